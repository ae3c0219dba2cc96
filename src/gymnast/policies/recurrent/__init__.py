"""Policies that remember: LSTM and GRU behind the encoder, with forward and backward passes written out."""
