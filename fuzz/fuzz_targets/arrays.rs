//! IDX files and files of NumPy.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::arrays(data));
