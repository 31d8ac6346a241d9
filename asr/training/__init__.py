"""Training: what ``asr train`` and the recipes run."""

#: said where nothing tells what to train on; here, since saying it needs no torch
NEEDED = (
    "--config FILE is needed, one that says what to train on: for example "
    "asr train --config conf/fsdd.yaml (--resume=RUNFOLDER goes on with a run)"
)
