//! Layers, losses, optimisers, data and checkpoints on the tape.
