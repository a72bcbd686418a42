//! Runs the conformance set; see `mod.rs`.

fn main() -> std::process::ExitCode {
    wengert_tests::conformance::run()
}
