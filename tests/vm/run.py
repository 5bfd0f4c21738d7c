#!/usr/bin/env python3
"""Boots the guest and runs cases in it.

run.py BOOT --build DIR --results DIR [--case NAME=SECONDS ...]

BOOT is rdma (soft-RoCE, ext4 on a virtual disk, device mapper, two NUMA nodes, cgroup v2) or systemd (systemd as PID 1). Debian's own kernel runs under
emulation, with the host's root read-only beneath an overlay, so that what was built on the host runs in the guest. Each case's exit code and
output come back in the results folder as NAME.rc and NAME.log; console.log has everything that the kernel said. A kernel oops or
WARNING belongs to the case that ran at that moment and fails it, whatever its own exit code; a guest that falls silent fails
the case that ran and all that were to follow. The exit code speaks of the boot alone: 0 when the guest came up and ended in order; each case's
own test reads its .rc (check-case.sh).
"""
import argparse
import json
import os
import pathlib
import re
import select
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
TROUBLE = re.compile(r"(Kernel panic|\bOops\b|BUG: |WARNING: CPU|INFO: task .* blocked for more than|general protection fault)")
MARK = re.compile(r"UBD-GUEST: (begin|end|done|pause|boot failed)(?: (\S+))?(?: (\d+))?")


def kernel_dir():
    return subprocess.run([HERE / "fetch-kernel.sh"], check=True, capture_output=True, text=True).stdout.strip().splitlines()[-1]


def disk(path, size):
    with open(path, "wb") as file:
        file.truncate(size)
    return ["-drive", f"file={path},format=raw,if=none,id={path.stem},cache=unsafe", "-device", f"virtio-blk-pci,drive={path.stem}"]


def qemu_command(boot, build, results, kernel, shell=False):
    release = next(pathlib.Path(kernel, "lib/modules").iterdir()).name
    initramfs = results / "initramfs.gz"
    subprocess.run([HERE / "make-initramfs.sh", kernel, initramfs], check=True)
    words = ["console=ttyS0", "panic=-1", "oops=panic" if not shell else "", "loglevel=5", f"ubd.boot={'shell' if shell and boot == 'rdma' else boot}",
             f"ubd.vm={HERE}", f"ubd.build={build}", f"ubd.kernel={kernel}", "ubd.shell=1" if shell else ""]
    command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2,sockets=2", "-m", "3G", "-nographic", "-no-reboot",
               "-nodefaults", "-serial", "stdio", "-qmp", f"unix:{results}/monitor.sock,server=on,wait=off",
               "-kernel", f"{kernel}/boot/vmlinuz-{release}", "-initrd", str(initramfs), "-append", " ".join(filter(None, words)),
               "-virtfs", "local,path=/,mount_tag=rootfs,security_model=passthrough,readonly=on,multidevs=remap",
               "-virtfs", f"local,path={results},mount_tag=results,security_model=none",
               "-object", "memory-backend-ram,id=m0,size=1536M", "-object", "memory-backend-ram,id=m1,size=1536M",
               "-numa", "node,nodeid=0,cpus=0,memdev=m0", "-numa", "node,nodeid=1,cpus=1,memdev=m1"]
    if boot == "rdma":
        command += disk(results / "disk0.img", 4 << 30) + disk(results / "disk1.img", 1 << 30)
    return command


class Console:
    """Follows the guest's console: which case runs, what the kernel complains about, and when a case wants the machine to stand still."""

    def __init__(self, results):
        self.monitor = results / "monitor.sock"
        self.log = open(results / "console.log", "w", encoding="utf-8", errors="replace")
        self.case = None
        self.done = False
        self.complaints = {}
        self.boot_error = None

    def line(self, text):
        self.log.write(text + "\n")
        self.log.flush()
        mark = MARK.search(text)
        if mark and mark[1] == "begin":
            self.case = mark[2]
        elif mark and mark[1] == "end":
            self.case = None
        elif mark and mark[1] == "done":
            self.done = True
        elif mark and mark[1] == "pause":
            self.pause(int(mark[2]))
        elif mark:
            self.boot_error = text
        elif TROUBLE.search(text):
            self.complaints.setdefault(self.case or "boot", []).append(text.strip())

    def pause(self, seconds):
        """Lets the machine stand still, by qemu's own protocol: each command is over when it was answered."""
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.settimeout(30)
            monitor.connect(str(self.monitor))
            answers = monitor.makefile("r", encoding="utf-8")
            answers.readline()  # the greeting
            for command, rest in (("qmp_capabilities", 0), ("stop", seconds), ("cont", 0)):
                monitor.sendall(json.dumps({"execute": command}).encode() + b"\n")
                while not {"return", "error"} & json.loads(answers.readline()).keys():
                    pass  # events come in between
                time.sleep(rest)  # how long the machine is to stand still


def follow(process, console, silence, deadline):
    """Reads until the guest powers off; returns why it was ended, if it had to be."""
    buffer = b""
    last = time.monotonic()
    while True:
        ready, _, _ = select.select([process.stdout], [], [], 1.0)
        now = time.monotonic()
        if ready:
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                return None
            buffer += chunk
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                console.line(line.decode(errors="replace").rstrip("\r"))
            last = now
        if now - last > silence:
            return f"the guest said nothing for {silence} s"
        if now > deadline:
            return "the guest took longer than its whole budget"


def settle(results, cases, console, why_ended):
    """Turns what was seen into one .rc per case; a case without one did not finish."""
    for name, _ in cases:
        stem = results / name.replace("/", "__")
        rc_file, log_file = stem.with_name(stem.name + ".rc"), stem.with_name(stem.name + ".log")
        notes = [f"kernel: {text}" for text in console.complaints.get(name, [])]
        if not rc_file.exists():
            notes.append(f"did not finish: {why_ended or console.boot_error or 'the guest stopped'}; see console.log")
            rc_file.write_text("125\n")
        elif notes:
            rc_file.write_text("126\n")
        if notes:
            with open(log_file, "a", encoding="utf-8") as log:
                log.write("\n".join(notes) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("boot", choices=["rdma", "systemd"])
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--results", required=True, type=pathlib.Path)
    parser.add_argument("--case", action="append", default=[], metavar="NAME=SECONDS")
    parser.add_argument("--shell", action="store_true")
    options = parser.parse_args()
    results = options.results.resolve()
    results.mkdir(parents=True, exist_ok=True)
    for old in [*results.glob("*.rc"), *results.glob("*.log")]:
        old.unlink()
    cases = [(name, int(seconds)) for name, seconds in (case.split("=") for case in options.case)]
    (results / "cases").write_text("".join(f"{name} {seconds}\n" for name, seconds in cases))
    command = qemu_command(options.boot, options.build.resolve(), results, kernel_dir(), options.shell)
    if options.shell:
        return subprocess.run(command).returncode
    started = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    console = Console(results)
    silence = 30 + max((seconds for _, seconds in cases), default=60)
    why = follow(process, console, silence, started + 120 + sum(seconds for _, seconds in cases))
    if why:
        process.kill()
    process.wait()
    settle(results, cases, console, why)
    for where, texts in console.complaints.items():
        print(f"kernel complaint during {where}: {texts[0]}")
    print(f"guest {options.boot}: {len(cases)} cases in {time.monotonic() - started:.0f} s" + (f"; ended: {why}" if why else ""))
    for image in results.glob("*.img"):
        image.unlink()
    return 1 if why or console.boot_error or "boot" in console.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
