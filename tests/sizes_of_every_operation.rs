//! Every operation on tensors of any size gives a result or an error: sizes near `isize::MAX`, 64 dimensions, and no elements. It
//! never panics except at the caller's line, as documented. It never aborts or runs for hours, and needs at most [`MOST_BYTES`] of
//! memory.
//!
//! The operations are the rows of the tables of `gradcheck_every_operation`, without the rows of operations on integers. They run in a process of their
//! own with little memory: this program with [`child`] as its only test. If this process ends or stands still, the parent reports the case
//! and continues with the next one.

#![cfg(target_os = "linux")]

use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use std::{env, thread};

use wengert::prelude::*;
use wengert_tests::memory;

use crate::gradcheck_every_operation::TABLES;
use crate::gradcheck_every_operation::grid::{Domain, Integers, Plain, tensor};
use crate::gradcheck_every_operation::row::{Operands, Row, V};

/// The environment variable with the number of the first case that the child runs.
const FIRST: &str = "WENGERT_TEST_FIRST_SIZE";

/// The limit of the child's address space, in KiB: 8 GiB. Because of the limit, the same requests for memory fail on
/// every machine.
const ADDRESS_SPACE: usize = 8 << 20;

/// The bytes by which one case may raise the largest address space. The results that fit are small.
const MOST_BYTES: usize = 256 << 20;

/// The time after which a case counts as standing still. A case takes microseconds, but other tests run at the same time.
const PATIENCE: Duration = Duration::from_secs(60);

const HUGE: usize = 1 << 40;

/// Returns the shapes for operations that take any shape.
fn shapes() -> Vec<Vec<usize>> {
    let most = isize::MAX as usize;
    let mut deep = vec![2; 59];
    deep.resize(64, 1);
    vec![
        vec![most / 8],
        vec![HUGE, 3],
        vec![3, HUGE],
        vec![(1 << 30) - 1, 1, (1 << 30) - 1],
        vec![1; 64],
        deep,
        vec![0, most],
        vec![most, 0],
        vec![1 << 62, 0, 1 << 62],
    ]
}

/// A row of the tables, and the shapes of its operands.
struct Case {
    row: &'static Row,
    domains: Vec<Domain>,
    shapes: Vec<Vec<usize>>,
    /// True if the data is expanded before it is recorded, and false if the tape records the expansion.
    is_leaf: bool,
}

/// Returns the shapes in which a huge size or 0 replaces a size. In each operand, at most one dimension is replaced. If several
/// operands have a dimension of the same size, all combinations are used.
fn stretched(shapes: &[&[usize]]) -> Vec<Vec<Vec<usize>>> {
    let mut sizes: Vec<usize> = shapes.iter().flat_map(|shape| shape.iter().copied()).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut all = Vec::new();
    for (size, new) in sizes.iter().flat_map(|&size| [HUGE, 1 << 58, 0].map(|new| (size, new))) {
        let mut combinations: Vec<Vec<Vec<usize>>> = vec![Vec::new()];
        for shape in shapes {
            let places = (0..shape.len()).filter(|&place| shape[place] == size);
            let replaced = |place: usize| {
                let mut shape = shape.to_vec();
                shape[place] = new;
                shape
            };
            let choices: Vec<Vec<usize>> = std::iter::once(shape.to_vec()).chain(places.map(replaced)).collect();
            let extended = |done: &Vec<Vec<usize>>| {
                choices.iter().map(|choice| [done.clone(), vec![choice.clone()]].concat()).collect::<Vec<_>>()
            };
            combinations = combinations.iter().flat_map(extended).collect();
        }
        all.extend(combinations);
    }
    all.sort();
    all.dedup();
    all
}

/// Returns the domains of the operands of a row, and the shapes of the operands for every case.
fn operands(row: &Row) -> (Vec<Domain>, Vec<Vec<Vec<usize>>>) {
    match row.operands {
        Operands::One(domain) | Operands::OneInPlace(domain) => {
            (vec![domain], shapes().into_iter().map(|shape| vec![shape]).collect())
        }
        Operands::Two(first, second, _) | Operands::TwoInPlace(first, second) => {
            let mut pairs = vec![
                vec![vec![HUGE, 1], vec![1 << 19]],
                vec![vec![1, 1 << 19], vec![HUGE, 1]],
                vec![vec![HUGE, 1], vec![HUGE]],
                vec![vec![1 << 62, 0], vec![1 << 62, 1]],
            ];
            for shape in shapes() {
                pairs.extend([vec![shape.clone(), shape.clone()], vec![shape.clone(), vec![]], vec![vec![], shape]]);
            }
            (vec![first, second], pairs)
        }
        Operands::Of(domain, shapes) => (vec![domain; shapes.len()], stretched(shapes)),
    }
}

/// Returns every case, always in the same order.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for row in TABLES.iter().copied().flatten() {
        let (domains, all) = operands(row);
        if domains.iter().any(|domain| matches!(domain, Integers)) {
            continue;
        }
        for shapes in all {
            for is_leaf in [false, true] {
                cases.push(Case { row, domains: domains.clone(), shapes: shapes.clone(), is_leaf });
            }
        }
    }
    cases
}

thread_local! {
    /// The file of the last panic of this thread, and its text.
    static PANIC: Cell<Option<(String, String)>> = const { Cell::new(None) };
}

/// Returns the result of `action`, or the file and the text of its panic.
fn caught<R>(action: impl FnOnce() -> R) -> Result<R, (String, String)> {
    catch_unwind(AssertUnwindSafe(action)).map_err(|_| PANIC.take().unwrap_or_default())
}

impl Case {
    fn title(&self) -> String {
        let Row { name, case, call, .. } = self.row;
        let kind = if self.is_leaf { "expanded data" } else { "recorded expansions" };
        let call: Vec<&str> = call.split_whitespace().collect();
        format!("{name} {case} of {:?} ({kind}): {}", self.shapes, call.join(" "))
    }

    /// Returns the operands of the case on a tape, or `None` if no tensor can have one of the shapes.
    fn inputs<'t>(&self, tape: &'t Tape<f64>) -> Option<Vec<V<'t>>> {
        let input = |(number, (shape, &domain)): (usize, (&Vec<usize>, &Domain))| {
            let number = tensor(Plain(&[1]), domain, 0.37 * number as f64).reshape(());
            let data = if shape.contains(&0) {
                Tensor::try_full(&shape[..], number.item()).ok()?
            } else {
                number.try_expand(&shape[..]).ok()?
            };
            if self.is_leaf { Some(tape.var(&data)) } else { tape.var(&number).try_expand(&shape[..]).ok() }
        };
        self.shapes.iter().zip(&self.domains).enumerate().map(input).collect()
    }

    /// Records the operation, and computes its gradients with respect to all operands, and its value. Returns a
    /// sentence if one of these panics. An error, and the documented panic of the operation itself, are right.
    fn run(&self) -> Result<(), String> {
        let tape = Tape::<f64>::new();
        let Some(inputs) = self.inputs(&tape) else { return Ok(()) };
        let result = match caught(|| (self.row.f)(&inputs)) {
            Ok(result) => result,
            // The documented panic of an operation without `try_`, at the line that called it.
            Err((file, _)) if file.contains("gradcheck_every_operation") => return Ok(()),
            Err((file, text)) => return Err(format!("recording panics in {file}: {text}")),
        };
        let panicked = |stage: &str, (file, text): (String, String)| format!("{stage} panics in {file}: {text}");
        // The gradients come first: a value that was computed before would be expanded data.
        let gradients = caught(|| result.try_sum(..)?.try_grad_slice(&inputs));
        for gradient in gradients.map_err(|panic| panicked("the gradient", panic))?.into_iter().flatten() {
            let _ = caught(|| gradient.try_value()).map_err(|panic| panicked("the gradient", panic))?;
        }
        let _ = caught(|| result.try_value()).map_err(|panic| panicked("the evaluation", panic))?;
        Ok(())
    }
}

/// Runs the cases from the number in [`FIRST`] on. Prints the number of each case before it runs, and each failure.
#[test]
fn child() {
    let Ok(first) = env::var(FIRST) else { return };
    let first: usize = first.parse().expect("a number");
    std::panic::set_hook(Box::new(|info| {
        let file = info.location().map(|location| format!("{}:{}", location.file(), location.line()));
        let payload = info.payload();
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| payload.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let first_line = text.unwrap_or_default().lines().next().unwrap_or_default().to_owned();
        PANIC.set(Some((file.unwrap_or_default(), first_line)));
    }));
    // Starts the helper threads, whose stacks count as address space.
    let _ = Tensor::<f64>::ones([1 << 20]).exp().sum(..);
    let mut out = std::io::stdout();
    let mut print = |line: String| {
        writeln!(out, "{line}").and_then(|()| out.flush()).expect("the parent reads");
    };
    let cases = cases();
    for (number, case) in cases.iter().enumerate().skip(first) {
        print(format!("\ncase {number} {}", case.title()));
        let before = memory("VmPeak");
        let failure = case.run().err();
        let grown = memory("VmPeak") - before;
        let failure = failure.or_else(|| (grown > MOST_BYTES).then(|| format!("takes {} MiB", grown >> 20)));
        if let Some(failure) = failure {
            print(format!("\nfailure {}: {failure}", case.title()));
        }
    }
    print(format!("\ncase {}", cases.len()));
}

/// Runs the child from case `first` on. Returns the number of the last case that began, and adds the failures to `failures`.
fn run(first: usize, failures: &mut Vec<String>) -> usize {
    let program = env::current_exe().expect("this program has a path");
    // The shell limits the address space, and then becomes the child.
    let mut child = Command::new("sh")
        .args(["-c", &format!("ulimit -v {ADDRESS_SPACE}; exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["--exact", "sizes_of_every_operation::child", "--nocapture", "--test-threads=1"])
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a shell exists");
    let (lines, given) = channel();
    let output = BufReader::new(child.stdout.take().expect("a pipe"));
    let reader = thread::spawn(move || output.lines().map_while(Result::ok).all(|line| lines.send(line).is_ok()));
    let mut last = first;
    loop {
        match given.recv_timeout(PATIENCE) {
            Ok(line) => {
                if let Some(number) = line.strip_prefix("case ") {
                    last = number.split(' ').next().and_then(|number| number.parse().ok()).expect("a number");
                } else if let Some(failure) = line.strip_prefix("failure ") {
                    failures.push(failure.to_owned());
                }
            }
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                failures.push(format!("{}: stands still", cases()[last].title()));
                child.kill().expect("the child runs");
                child.wait().expect("the child was started here");
                return last;
            }
        }
    }
    let _ = reader.join();
    let status = child.wait().expect("the child was started here");
    if last < cases().len() {
        failures.push(format!("{}: ends the process: {status}", cases()[last].title()));
    }
    last
}

#[test]
fn every_operation_gives_a_result_or_an_error() {
    let count = cases().len();
    assert!(count > 3000, "only {count} cases");
    let (mut failures, mut next) = (Vec::new(), 0);
    while next < count && failures.len() < 200 {
        next = run(next, &mut failures) + 1;
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
