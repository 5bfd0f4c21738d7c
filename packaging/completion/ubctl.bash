# bash completion for ubctl. Words are listed here; pool names and lease ids are asked from the daemon, briefly and silently.

# Values of one key of a listing: what stands behind "key": at the listing's own level.
_ubctl_ask() {
  local listing=$1 key=$2
  ubctl "${_ubctl_globals[@]}" --timeout 500ms --json "$listing" 2>/dev/null |
    sed -n "s/^      \"$key\": \"\{0,1\}\([^\",]*\)\"\{0,1\},\{0,1\}\$/\1/p"
}

_ubctl() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
  local commands='status version pools blocks leases sessions queues path watch top lease drain verify bench tune demo completion'
  local globals='--runtime-dir --timeout --json --help'
  local command='' sub='' word i
  local -a _ubctl_globals=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    case $word in
      --runtime-dir)
        _ubctl_globals+=(--runtime-dir "${COMP_WORDS[i + 1]}")
        ((++i))
        ;;
      --timeout | --pool | --wait | --ttl | --reason | --interval | --count | --chunk | --samples | --ubd | --file | --dir) ((++i)) ;;
      --rounds | --streams | --seed | --seconds | --bytes | --depth | --blocks) ((++i)) ;;
      -*) ;;
      *) if [[ -z $command ]]; then command=$word; elif [[ -z $sub ]]; then sub=$word; fi ;;
    esac
  done

  COMPREPLY=()
  case $prev in
    --runtime-dir)
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      return
      ;;
    --pool)
      mapfile -t COMPREPLY < <(compgen -W "$(_ubctl_ask pools name)" -- "$cur")
      return
      ;;
    --dir)
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      return
      ;;
    --ubd | --file)
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return
      ;;
    --timeout | --wait | --ttl | --reason | --interval | --count | --chunk | --samples | --rounds | --streams) return ;;
    --seed | --seconds | --bytes | --depth | --blocks) return ;;
  esac

  local words
  case $command in
    '') words="$commands $globals --version" ;;
    blocks) words="--pool $globals" ;;
    top) words="--interval --count $globals" ;;
    drain) words="--off --wait $globals" ;;
    lease)
      case $sub in
        '') words="hold revoke $globals" ;;
        hold) words="--pool --wait --ttl --touch $globals" ;;
        revoke) words="$([[ $cur == -* ]] || _ubctl_ask leases id) --reason $globals" ;;
      esac
      ;;
    path)
      case $sub in
        '') words="get set $globals" ;;
        set) words="direct-only prefer-direct staged-only $globals" ;;
        *) words=$globals ;;
      esac
      ;;
    verify) words="--file --rounds --streams --seed --pool $globals" ;;
    bench)
      case $sub in
        '') words="acquire queue ab segments $globals" ;;
        acquire) words="--samples --quick --full --pool --ubd $globals" ;;
        queue) words="--file --dir --quick --full --pool $globals" ;;
        ab) words="--file --rounds --seconds --bytes --chunk --depth --pool $globals" ;;
        segments) words="--file --quick --pool $globals" ;;
      esac
      ;;
    tune)
      case $sub in
        '') words="queue-depth chunk $globals" ;;
        queue-depth) words="--file --chunk --streams --blocks --seconds --rounds --random --pool $globals" ;;
        chunk) words="--file --seconds --rounds --random --pool $globals" ;;
      esac
      ;;
    demo)
      if [[ $cur != -* && -z $sub ]]; then
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
      fi
      words="--pool --chunk --no-compare $globals"
      ;;
    completion) if [[ -z $sub ]]; then words="bash $globals"; else words=$globals; fi ;;
    *) words=$globals ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -o filenames -F _ubctl ubctl
