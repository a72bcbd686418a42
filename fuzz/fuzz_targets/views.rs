//! Chains of views, compared with copies of the elements.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::views(data));
