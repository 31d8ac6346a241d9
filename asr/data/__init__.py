"""From corpora on disk to padded batches: manifests, datasets, strings made on the fly."""
