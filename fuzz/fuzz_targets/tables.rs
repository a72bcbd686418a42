//! Tables of values that commas or semicolons separate: with and without names, gzipped or not.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::tables(data));
