//! Equations of `einsum`, compared with nested loops.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::einsum(data));
