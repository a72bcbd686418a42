//! Faults of the caller's code and of the system leave the library working. After each fault, a program gives the same bits as before.
//! The caller's faults are panics in closures and in custom operations, threads that end, and destructors of thread-local variables. The
//! system's faults are a system that starts no thread, and a full standard error. Another test uses 1 to 64 threads.

#![cfg(unix)]

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::{env, fs, thread};

use wengert::autograd::transforms::vmap;
use wengert::autograd::{Call, Error, Function, FunctionCall, Operation, gradcheck};
use wengert::prelude::*;
use wengert::tensor::{num_threads, set_num_threads};
use wengert_tests::alone;

/// The environment variable that makes [`child`] run. Its value is the expected bits.
const EXPECTED: &str = "WENGERT_TEST_EXPECTED_BITS";

/// Returns the bits of results that small programs, large programs and programs over short rows compute on several threads.
fn bits() -> Vec<u64> {
    let mut bits = Vec::new();
    for shape in [[3usize, 4], [700, 300], [40_000, 3]] {
        let tape = Tape::<f64>::new();
        let x = tape.var(&Tensor::from_fn(shape, |at| ((at[0] * 31 + at[1] * 17) % 101) as f64 * 0.01));
        let row = tape.var(&Tensor::from_fn([shape[1]], |at| at[0] as f64 * 0.001));
        let loss = ((x * row + 0.5).tanh() - x.mean_keepdim(0)).square().sum(..);
        let gradients = loss.backward();
        bits.push(loss.item().to_bits());
        bits.push(gradients.of(x).sum(..).item().to_bits());
        bits.push(gradients.of(row).sum(..).item().to_bits());
        bits.push(x.value().softmax(0).exp().sum(..).item().to_bits());
    }
    bits
}

/// Runs `action`, which must panic with the text of [`fault`].
#[track_caller]
fn panics<R>(action: impl FnOnce() -> R) {
    let payload = catch_unwind(AssertUnwindSafe(action)).err().expect("a panic");
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"a fault of the caller"));
}

fn fault() -> ! {
    panic!("a fault of the caller")
}

/// The identity, as an operation and as a function. The method whose name the field has panics; `shape` also names `shapes`.
struct Faulty(&'static str);

impl Faulty {
    fn reach(&self, method: &str) {
        if self.0 == method {
            // The fault follows a parallel section.
            let _ = Tensor::<f64>::ones([1 << 18]).exp().sum(..);
            fault();
        }
    }
}

impl Operation<f64> for Faulty {
    fn name(&self) -> &'static str {
        self.reach("name");
        "faulty"
    }

    fn shape(&self, inputs: &[Shape]) -> Result<Shape, String> {
        self.reach("shape");
        Ok(inputs[0].clone())
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> Result<Tensor<f64>, Error> {
        self.reach("run");
        Ok(inputs[0].clone())
    }

    fn vjp<'t>(&self, _call: &Call<'t, f64>, _input: usize, g: Var<'t, f64>) -> Option<Var<'t, f64>> {
        self.reach("vjp");
        Some(g)
    }

    fn jvp<'t>(&self, _call: &Call<'t, f64>, _input: usize, v: Var<'t, f64>) -> Option<Var<'t, f64>> {
        self.reach("jvp");
        Some(v)
    }

    fn batch<'t>(&self, _call: &wengert::autograd::BatchedCall<'t, f64>) -> Option<Var<'t, f64>> {
        self.reach("batch");
        None
    }
}

impl Function<f64> for Faulty {
    fn name(&self) -> &'static str {
        "faulty_function"
    }

    fn shapes(&self, inputs: &[Shape]) -> Result<Vec<Shape>, String> {
        self.reach("shape");
        Ok(inputs.to_vec())
    }

    fn run(&self, inputs: &[Tensor<f64>]) -> Result<Vec<Tensor<f64>>, Error> {
        self.reach("run");
        Ok(inputs.to_vec())
    }

    fn vjp<'t>(&self, _call: &FunctionCall<'t, f64>, gradients: &[Var<'t, f64>]) -> Vec<Option<Var<'t, f64>>> {
        self.reach("vjp");
        gradients.iter().copied().map(Some).collect()
    }
}

/// Uses a faulty operation on a tape. Then checks that other nodes of the same tape still have their values and derivatives.
fn panics_on_a_tape(method: &'static str, use_it: impl for<'t> Fn(&'t Tape<f64>, Var<'t, f64>) -> Var<'t, f64>) {
    let tape = Tape::<f64>::new();
    let x = tape.var(&Tensor::from_fn([500, 70], |at| (at[0] + at[1]) as f64 * 0.001));
    let before = (x * 2.0).exp();
    panics(|| {
        let z = use_it(&tape, before);
        match method {
            "jvp" => drop(z.jvp(&[(x, x)]).value()),
            "vjp" => drop(z.sum(..).backward()),
            _ => drop((z * 2.0).value()),
        }
    });
    let fresh = Tape::<f64>::new();
    let y = fresh.var(&x.value());
    let expected = (y * 2.0).exp();
    assert_eq!(before.value(), expected.value(), "{method}");
    assert_eq!(before.sum(..).backward().of(x), expected.sum(..).backward().of(y), "{method}");
    assert_eq!(before.jvp(&[(x, x)]).value(), expected.jvp(&[(y, y)]).value(), "{method}");
}

#[test]
fn a_panic_of_the_caller_leaves_everything_working() {
    let _alone = alone();
    let expected = bits();
    for method in ["name", "shape", "run", "vjp", "jvp"] {
        panics_on_a_tape(method, |tape, x| tape.apply(Faulty(method), &[x]));
        assert_eq!(bits(), expected, "after a fault in {method}");
    }
    for method in ["shape", "run", "vjp"] {
        panics_on_a_tape(method, |tape, x| tape.apply_function(Faulty(method), &[x])[0]);
        assert_eq!(bits(), expected, "after a fault in {method} of a function");
    }
    let x = Tensor::<f64>::ones([3, 2]);
    panics(|| Tensor::<f64>::from_fn([1000, 1000], |at| if at == [999, 7] { fault() } else { 1.0 }));
    panics(|| gradcheck(|[_]: [Var<'_, f64>; 1]| fault(), [&x]));
    panics(|| vmap(|[x]| x.tape().apply(Faulty("batch"), &[x]), [&x]));
    panics(|| Tape::<f64>::new().value_and_gradients(|_| fault()));
    assert_eq!(bits(), expected, "after a fault in a closure");
}

/// Some threads panic in custom operations while others compute. Each thread ends.
#[test]
fn threads_that_panic_and_end_disturb_no_other_thread() {
    let _alone = alone();
    let expected = bits();
    for _ in 0..5 {
        thread::scope(|scope| {
            for number in 0..8 {
                let expected = &expected;
                scope.spawn(move || {
                    if number % 2 == 0 {
                        panics_on_a_tape("run", |tape, x| tape.apply(Faulty("run"), &[x]));
                    }
                    assert_eq!(&bits(), expected);
                });
            }
        });
    }
    assert_eq!(bits(), expected);
}

/// A value that computes [`bits`] when it is dropped, and stores them.
struct AtTheEnd(Arc<Mutex<Vec<Vec<u64>>>>);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        // The first drop warns, because this line has not warned before.
        let _ = Tensor::<f64>::ones([4, 1]).add(Tensor::ones([4]));
        self.0.lock().expect("no thread panics").push(bits());
    }
}

thread_local! {
    static EARLY: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
    static LATE: RefCell<Option<AtTheEnd>> = const { RefCell::new(None) };
}

/// The thread-local variables of the library may be destroyed before the caller's.
#[test]
fn a_thread_local_variable_may_compute_when_it_is_dropped() {
    let _alone = alone();
    let (expected, found) = (bits(), Arc::new(Mutex::new(Vec::new())));
    let given = Arc::clone(&found);
    thread::spawn(move || {
        EARLY.set(Some(AtTheEnd(Arc::clone(&given))));
        let _ = bits();
        LATE.set(Some(AtTheEnd(given)));
    })
    .join()
    .expect("the thread ends");
    assert_eq!(*found.lock().expect("no thread panics"), [expected.clone(), expected]);
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let _alone = alone();
    let (before, expected) = (num_threads(), bits());
    for threads in [1, 2, 7, 64] {
        set_num_threads(threads);
        assert_eq!(bits(), expected, "{threads} threads");
    }
    set_num_threads(before);
}

/// Compares the bits with the bits of the parent process, and triggers a warning.
#[test]
fn child() {
    let Ok(expected) = env::var(EXPECTED) else { return };
    set_num_threads(4);
    assert_eq!(format!("{:?}", bits()), expected);
    let _ = Tensor::<f64>::ones([4, 1]).add(Tensor::ones([4]));
}

/// Runs [`child`] in another process, whose command `change` modifies.
fn run_child(change: impl FnOnce(&mut Command) -> &mut Command) {
    let mut command = Command::new(env::current_exe().expect("this program has a path"));
    command.args(["--exact", "faults::child", "--test-threads=1"]).env(EXPECTED, format!("{:?}", bits()));
    let output = change(&mut command).output().expect("the child starts");
    assert!(output.status.success(), "{}: {}", output.status, String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_system_that_starts_no_thread_gives_the_same_bits() {
    let _alone = alone();
    // No stack can be that large, so no thread starts.
    run_child(|command| command.env("RUST_MIN_STACK", (1u64 << 46).to_string()));
}

#[cfg(target_os = "linux")]
#[test]
fn a_warning_to_a_full_standard_error_is_lost() {
    let _alone = alone();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    run_child(|command| command.stderr(full));
}
