//! The broadcasting rule, compared with the definition.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::broadcasting(data));
