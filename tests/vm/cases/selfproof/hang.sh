#!/bin/bash
# Never ends, to see that the lane says so.
exec tail -f /dev/null
