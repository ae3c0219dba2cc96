"""Exchange with the outside: models of other libraries in, models and scripts out."""
