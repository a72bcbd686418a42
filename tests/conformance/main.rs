//! Conformance with PyTorch: see `mod.rs`.

fn main() -> std::process::ExitCode {
    wengert_tests::conformance::run()
}
