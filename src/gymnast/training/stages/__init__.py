"""A plan by stage: one task after the other, with the same model, in one run."""
