#!/usr/bin/env bash
# bash recipes/benchmark/gpu_check.sh [options of gpu_check.py]
# Trains and decodes on whatever accelerator is here, at most eight minutes; on a CPU (--device cpu)
# with far smaller batches. Needs torch, torchaudio, lightning and this package's light
# dependencies; nothing is installed, downloaded or left behind.
set -euo pipefail
cd "$(dirname "$0")/../.."
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
exec timeout 480 "${PYTHON:-python3}" recipes/benchmark/gpu_check.py "$@"
