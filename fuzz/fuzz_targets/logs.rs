//! Logs of a training run.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::logs(data));
