//! PNG and JPEG files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::images(data));
