//! Conformance with PyTorch: runs a set of cases whose expected values, gradients and errors PyTorch computed.
//!
//! ```text
//! cargo test -p wengert-tests --test conformance -- [--verbose] [--every=N] [FILTER]
//! ```
//!
//! The set is in the folder `conformance/data`, or in the folder that the environment variable `CONFORMANCE_DIR` names.
//! `conformance/data/FORMAT.md` describes the format. A filter selects the cases whose id contains it. `--every=N` runs only every Nth of
//! the selected cases. Every tensor case runs on eager tensors. It also runs on a tape if an input requires a gradient, unless the case is
//! about strides or shared memory. It passes if both agree with PyTorch. Shape cases run on eager tensors only.
//!
//! `conformance/skip.rs` lists the cases that the design excludes, with reasons. Cases of mixed element types are excluded while they run,
//! too. Operations that do not exist are skipped by name. The last line is `N passed, M failed, K skipped`. The exit code is 1 if a case
//! failed, if no case was selected, or if the set could not be read. After a whole run it is also 1 if the pages state other counts.
//!
//! The runner is a module of the library, so its generic operations are compiled once. The other tests link these instances.

mod call;
mod compare;
mod eager;
mod format;
mod json;
mod on_tape;
mod ops;
mod panics;
mod program;
mod refusal;
mod report;
mod shapes;
mod skip;
mod store;
mod value;

use std::path::PathBuf;
use std::process::ExitCode;

use self::eager::Trouble;
use self::format::{Case, Set, ShapeCase};
use self::report::{Report, Verdict};
use self::value::Stop;
use wengert_tensor::DType;

/// Runs the set, with the filter and the options in the arguments of the process.
pub fn run() -> ExitCode {
    // PyTorch, the reference, gives no compatibility warning, so the runner gives none.
    wengert_tensor::compat::set_process(wengert_tensor::compat::Rules::pytorch());
    let mut report = Report::default();
    let (mut filter, mut every) = (String::new(), 1);
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--verbose" => report.verbose = true,
            option if option.starts_with("--every=") => {
                let Some(number) = option["--every=".len()..].parse().ok().filter(|&every| every > 0) else {
                    println!("{option}: N must be a positive integer");
                    return ExitCode::FAILURE;
                };
                every = number;
            }
            // Ignores an option of the test runner.
            option if option.starts_with('-') => {}
            text => filter = text.to_owned(),
        }
    }
    let folder = match std::env::var_os("CONFORMANCE_DIR") {
        Some(folder) => PathBuf::from(folder),
        None => PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/data")),
    };
    let set = match Set::read(&folder) {
        Ok(set) => set,
        Err(error) => {
            println!("the conformance set cannot be read: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!(
        "{}: {} tensor cases, {} shape cases, {}",
        folder.display(),
        set.cases.len(),
        set.shape_cases.len(),
        set.reference
    );
    panics::silence();
    for case in set.cases.iter().filter(|case| case.id.contains(&filter)).step_by(every) {
        report.add(&case.id, tensor_case(case, &set));
    }
    for case in set.shape_cases.iter().filter(|case| case.id.contains(&filter)).step_by(every) {
        report.add(&case.id, shape_case(case));
    }
    if report.total() == 0 {
        println!("no case has '{filter}' in its id");
        return ExitCode::FAILURE;
    }
    let is_whole = filter.is_empty() && every == 1 && std::env::var_os("CONFORMANCE_DIR").is_none();
    let are_pages_right = !is_whole || pages_agree(&report);
    if report.finish() && are_pages_right { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Returns true if README.md and the guide state the counts of this run. Prints the right sentence if they do not.
fn pages_agree(report: &Report) -> bool {
    let page =
        |path: &str| std::fs::read_to_string(format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))).unwrap_or_default();
    let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let sentence = report.sentence();
    let count = sentence.split(' ').next().unwrap_or_default().to_owned();
    let readme = one_line(page("README.md")).contains(&sentence);
    let guide = one_line(page("docs/guide/from-pytorch.md")).contains(&format!("run {count} cases"));
    if !readme || !guide {
        println!("README.md must say: {sentence}\ndocs/guide/from-pytorch.md must say: run {count} cases");
    }
    readme && guide
}

fn tensor_case(case: &Case, set: &Set) -> Verdict {
    if let Some(reason) = skip::ruled_out(case) {
        return Verdict::RuledOut(reason);
    }
    let dtypes = case.inputs.iter().map(|input| input.window.dtype);
    let dtypes = dtypes.chain(case.outputs.iter().map(|output| output.dtype));
    let float = program::float_type(dtypes);
    let eager = verdict(panics::caught(|| match float {
        DType::F32 => eager::run::<f32>(case, set),
        _ => eager::run::<f64>(case, set),
    }));
    if !on_tape::applies(case) || matches!(eager, Verdict::RuledOut(_) | Verdict::NotBuilt(_)) {
        return eager;
    }
    let tape = verdict(panics::caught(|| match float {
        DType::F32 => on_tape::run::<f32>(case, set),
        _ => on_tape::run::<f64>(case, set),
    }));
    match (eager, tape) {
        (Verdict::Passed, Verdict::Failed(message)) => Verdict::Failed(format!("on the tape: {message}")),
        (Verdict::Failed(message), Verdict::Passed) => Verdict::Failed(format!("eager: {message}")),
        (Verdict::Failed(eager), Verdict::Failed(tape)) => {
            Verdict::Failed(format!("eager: {eager}\n  on the tape: {tape}"))
        }
        (_, tape) => tape,
    }
}

fn shape_case(case: &ShapeCase) -> Verdict {
    match skip::ruled_out_shape(case) {
        Some(reason) => Verdict::RuledOut(reason),
        None => verdict(panics::caught(|| shapes::run(case))),
    }
}

fn verdict(result: Result<Result<(), Trouble>, String>) -> Verdict {
    match result {
        Ok(Ok(())) => Verdict::Passed,
        Ok(Err(Trouble::Differs(message))) => Verdict::Failed(message),
        Ok(Err(Trouble::Stopped(Stop::NotBuilt(operation)))) => Verdict::NotBuilt(operation),
        Ok(Err(Trouble::Stopped(Stop::RuledOut(reason)))) => Verdict::RuledOut(reason),
        Ok(Err(Trouble::Stopped(stop))) => Verdict::Failed(format!("{stop:?}")),
        Err(panic) => Verdict::Failed(format!("panicked: {panic}")),
    }
}
