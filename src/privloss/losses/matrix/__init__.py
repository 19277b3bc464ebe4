"""Matrix mechanisms, C x + noise: what one record can do to C x (`sensitivity`), with and without a random pattern of
steps (`steps`), and well known C (`families`). Proofs: docs/matrix.md."""
