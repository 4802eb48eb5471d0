#!/bin/sh
# Reads a sum, writes its result.
read -r sum
echo "The answer is $(($sum))."
