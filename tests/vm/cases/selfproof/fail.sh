#!/bin/bash
# Fails, to see that the lane says so.
echo "failed on purpose"
exit 3
