//! Random programs, computed in several ways.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::programs(data));
