/* The sleeping protocol of proto/wire/queue_layout.h, with what makes it hard: processors keep their stores in a buffer
 * for as long as they like, so that "store, then look" may really look first. A fence empties the buffer. Two of them
 * per direction keep a wake-up from being lost; built with -DNO_FENCE_SUBMIT, -DNO_FENCE_DAEMON, -DNO_FENCE_COMPLETE or
 * -DNO_FENCE_CLIENT the model must fail (tests/model/check.sh).
 *
 * Client and daemon play N rounds: the client submits (stores sq_tail, fence, reads daemon_sleep, rings if it is set)
 * and waits for the completion (reads wake_count, stores waiters, fence, reads cq_tail, FUTEX_WAIT on wake_count). The
 * daemon looks at sq_tail; if nothing is there it sleeps (stores daemon_sleep, fence, reads sq_tail, epoll); what is
 * there it completes (stores cq_tail, fence, reads waiters, adds to wake_count and wakes).
 *
 * Proved for every interleaving and every time at which a buffered store may reach memory: no invalid end state, that
 * is, nobody sleeps for ever while the other has done its part. */

#define N 3

/* Memory as all see it. One writer each, but for the eventfd and the futex, which are the kernel's: system calls act
 * on memory at once and in order. */
byte sq_tail, cq_tail, daemon_sleep, waiters, wake_count;
byte eventfd;      /* edges since the daemon last slept; never read, only seen by epoll */
bool futex_woken;  /* FUTEX_WAKE came while the client was in FUTEX_WAIT */
bool in_futex;

/* Store buffers: first in, first out, as on x86; on weaker machines the release stores of sq_tail and cq_tail are what
 * keeps the order that matters. A store is (which variable, value). */
mtype = { SQ_TAIL, DAEMON_SLEEP, CQ_TAIL, WAITERS };
chan client_buffer = [3] of { mtype, byte };
chan daemon_buffer = [3] of { mtype, byte };

inline apply(var, value) {
  if
  :: var == SQ_TAIL -> sq_tail = value
  :: var == DAEMON_SLEEP -> daemon_sleep = value
  :: var == CQ_TAIL -> cq_tail = value
  :: var == WAITERS -> waiters = value
  fi
}

/* The processors' own time: at any moment the oldest buffered store may reach memory. */
active proctype client_cpu() {
  mtype var; byte value;
end:
  do
  :: atomic { client_buffer?var, value -> apply(var, value) }
  od
}
active proctype daemon_cpu() {
  mtype var; byte value;
end:
  do
  :: atomic { daemon_buffer?var, value -> apply(var, value) }
  od
}

#define FENCE(buffer) empty(buffer)

active proctype client() {
  byte round = 0;
  byte seen;
  bool rings;
  do
  :: round < N ->
    round++;
    client_buffer!SQ_TAIL, round;
#ifndef NO_FENCE_SUBMIT
    FENCE(client_buffer);
#endif
    rings = (daemon_sleep != 0);
    if
    :: rings -> FENCE(client_buffer); eventfd = 1  /* write(2): a system call orders what came before it */
    :: else -> skip
    fi;
    /* Waits until cq_tail says round. */
    do
    :: cq_tail == round -> break
    :: else ->
      seen = wake_count;
      client_buffer!WAITERS, 1;
#ifndef NO_FENCE_CLIENT
      FENCE(client_buffer);
#endif
      if
      :: cq_tail == round -> skip
      :: else ->
        /* FUTEX_WAIT: compares and goes to sleep in one step. */
        atomic {
          if
          :: wake_count == seen -> in_futex = true; futex_woken = false
          :: else -> skip
          fi
        };
        /* futex_woken is the kernel's answer; a buffered store still reaches memory while the thread sleeps. */
        if
        :: in_futex -> futex_woken; in_futex = false
        :: else -> skip
        fi
      fi;
      client_buffer!WAITERS, 0
    od
  :: else -> break
  od
}

active proctype daemon() {
  byte head = 0;
  byte tail;
  do
  :: head == N -> break
  :: else ->
    tail = sq_tail;
    if
    :: tail != head ->
      head = tail;
      daemon_buffer!CQ_TAIL, head;
#ifndef NO_FENCE_COMPLETE
      FENCE(daemon_buffer);
#endif
      if
      :: waiters != 0 -> atomic { wake_count++; if :: in_futex -> futex_woken = true :: else -> skip fi }
      :: else -> skip
      fi
    :: else ->
      daemon_buffer!DAEMON_SLEEP, 1;
#ifndef NO_FENCE_DAEMON
      FENCE(daemon_buffer);
#endif
      tail = sq_tail;
      if
      :: tail != head -> skip
      :: else -> eventfd == 1; eventfd = 0  /* epoll_wait, edge-triggered: the edge is used up */
      fi;
      daemon_buffer!DAEMON_SLEEP, 0
    fi
  od
}
