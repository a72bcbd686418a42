//! Checkpoints: the model, the optimiser and the other entries.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::checkpoints(data));
