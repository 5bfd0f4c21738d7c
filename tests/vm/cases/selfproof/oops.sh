#!/bin/bash
# Crashes the kernel, to see that the lane says so.
echo c >/proc/sysrq-trigger
