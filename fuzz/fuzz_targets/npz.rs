//! Archives of NumPy's arrays.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| wengert_fuzz::npz(data));
