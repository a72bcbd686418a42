//! Warnings: their texts, which are PyTorch's if PyTorch had the warning, and the handlers and collectors that receive them.
//!
//! Each line of code is reported once per kind of warning, to each collector or to the handler of the process. The decision whether to warn
//! of two shapes is in `resolve.rs`.

use std::cell::RefCell;
use std::collections::HashSet;
use std::fmt;
use std::io::Write as _;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::Shape;
use crate::shape::diagnostic;
use crate::shape::site::Site;

/// The environment variable that sets `broadcast_warning` and `when` of [`Rules`](crate::shape::compat::Rules) for a process.
pub const VARIABLE: &str = "WENGERT_BROADCAST_WARNING";

/// A problem that does not stop the operation.
///
/// `Display` gives the text as Python prints it: `src/main.rs:12: UserWarning: self and other …`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Warning {
    /// A broadcast of operands that PyTorch before version 0.2 viewed as one-dimensional instead. The two results often differ.
    Broadcast {
        /// The shapes of `self` and `other`.
        shapes: (Shape, Shape),
        /// The operation, and the line of code that called it.
        at: Site,
    },
    /// Operands that do not broadcast, and that the rule [`legacy_pointwise`](crate::shape::compat::Rules::legacy_pointwise) views as
    /// one-dimensional.
    Pointwise {
        /// The shapes of `self` and `other`.
        shapes: (Shape, Shape),
        /// True if the result is written to `self`. PyTorch has a different message for this case.
        in_place: bool,
        /// The operation, and the line of code that called it.
        at: Site,
    },
    /// An optimiser step whose gradients are from a tape in evaluation mode, although a layer on the tape behaves differently in training.
    Evaluating {
        /// The kind of the layer.
        layer: &'static str,
        /// The optimiser's step, and the line of code that called it.
        at: Site,
    },
    /// An invalid value of `WENGERT_BROADCAST_WARNING`.
    Environment {
        /// The invalid value.
        value: String,
    },
}

impl Warning {
    /// Returns the text of the warning without the line of code.
    pub fn message(&self) -> String {
        match self {
            Warning::Broadcast { .. } => "self and other do not have the same shape, but are broadcastable, and have \
                                          the same number of elements.\n\
                                          Changing behavior in a backwards incompatible manner to broadcasting rather \
                                          than viewing as 1-dimensional."
                .to_owned(),
            Warning::Pointwise { in_place: false, .. } => {
                "self and other not broadcastable, but have the same number of elements.  \
                 Falling back to deprecated pointwise behavior."
                    .to_owned()
            }
            Warning::Pointwise { in_place: true, .. } => {
                "other is not broadcastable to self, but they have the same number of elements.  \
                 Falling back to deprecated pointwise behavior."
                    .to_owned()
            }
            Warning::Evaluating { layer, .. } => format!(
                "this step has gradients of a tape that does not train: `{layer}` ran as in evaluation, not as in training."
            ),
            Warning::Environment { value } => format!(
                "{VARIABLE}={value} is ignored: it must be off, warn or deny, \
                 alone or followed by :backward or :suspicious."
            ),
        }
    }

    /// Returns a proposed change of the code that makes the user's intention clear, if there is one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Warning::Broadcast { shapes, at } | Warning::Pointwise { shapes, at, .. } => {
                Some(diagnostic::pairing_hint(shapes, at))
            }
            Warning::Evaluating { .. } => Some(
                "make the tape by `Tape::training(generator)`; if the layer shall evaluate, freeze its parameters (`model.freeze(path)`) \
                 or set its dropout to 0"
                    .to_owned(),
            ),
            Warning::Environment { .. } => None,
        }
    }

    /// Returns the whole text of the warning: the line of code and the message, then the two shapes and the hint, if the warning has them.
    pub fn details(&self) -> String {
        let mut text = self.to_string();
        if let Warning::Broadcast { shapes, .. } | Warning::Pointwise { shapes, .. } = self {
            text.push_str(&format!("\n  self has shape {}, other {}", shapes.0, shapes.1));
        }
        match self.hint() {
            Some(hint) => text + &format!("\n  hint: {hint}"),
            None => text,
        }
    }

    /// Returns the operation and the line of code. Returns `None` for a warning about the environment variable.
    pub fn site(&self) -> Option<Site> {
        match self {
            Warning::Broadcast { at, .. } | Warning::Pointwise { at, .. } | Warning::Evaluating { at, .. } => Some(*at),
            Warning::Environment { .. } => None,
        }
    }

    /// Returns the key by which repeated warnings are recognized: the kind of warning and the line of code.
    fn key(&self) -> Key {
        let kind = std::mem::discriminant(self);
        self.site().map_or((kind, "", 0), |at| (kind, at.location.file(), at.location.line()))
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(at) = self.site() {
            write!(f, "{}:{}: ", at.location.file(), at.location.line())?;
        }
        write!(f, "UserWarning: {}", self.message())
    }
}

type Key = (std::mem::Discriminant<Warning>, &'static str, u32);
type Handler = Arc<dyn Fn(&Warning) + Send + Sync>;

/// The handler that receives the warnings of all threads. `None` stands for [`stderr_handler`].
static HANDLER: RwLock<Option<Handler>> = RwLock::new(None);
static REPORTED: Mutex<Option<HashSet<Key>>> = Mutex::new(None);

thread_local! {
    static COLLECTORS: RefCell<Vec<Rc<RefCell<Collected>>>> = const { RefCell::new(Vec::new()) };
}

#[derive(Debug, Default)]
struct Collected {
    reported: HashSet<Key>,
    warnings: Vec<Warning>,
}

/// Sets the handler of the process's warnings, for example [`log_handler`] or a closure that counts them. The default is
/// [`stderr_handler`].
///
/// Each line of code is reported once per process and kind of warning, to the handler that is set at that time.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; }
/// use wengert::tensor::compat;
///
/// compat::set_handler(compat::log_handler);
/// ```
pub fn set_handler(handler: impl Fn(&Warning) + Send + Sync + 'static) {
    let before = HANDLER.write().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(handler));
    // The lock is released before the earlier handler is dropped, because a value in that handler may warn when it is dropped.
    drop(before);
}

/// Prints the [details](Warning::details) of a warning to standard error. If standard error is closed or full, the warning is lost and the
/// program goes on.
pub fn stderr_handler(warning: &Warning) {
    // `eprintln` would panic if the write fails.
    let _ = writeln!(std::io::stderr().lock(), "{}", warning.details());
}

/// Passes a warning to the program's logger (the `log` crate), with level `warn` and target `wengert`. The text has no shapes and no hint.
pub fn log_handler(warning: &Warning) {
    log::warn!(target: "wengert", "{warning}");
}

/// Collects the warnings of this thread until the collector is dropped. The handler of the process does not get these warnings. If
/// collectors are nested, the innermost collector receives the warning. A collector receives each kind of warning once for each line of
/// code, even if the line was reported elsewhere before.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
/// use wengert::tensor::compat;
/// use wengert::prelude::*;
///
/// let warnings = compat::collect();
/// for _ in 0..3 {
///     let _ = Tensor::<f32>::ones([4, 1]).add(&Tensor::ones([4]));
/// }
/// assert_eq!(warnings.warnings().len(), 1);
/// ```
#[must_use = "warnings are collected until the collector is dropped"]
pub fn collect() -> Collector {
    let collected = Rc::default();
    COLLECTORS.with_borrow_mut(|collectors| collectors.push(Rc::clone(&collected)));
    Collector { collected }
}

/// A collector of warnings of one thread, made by [`collect`].
#[derive(Debug)]
pub struct Collector {
    collected: Rc<RefCell<Collected>>,
}

impl Collector {
    /// Returns the warnings collected until now, in the order in which they occurred.
    pub fn warnings(&self) -> Vec<Warning> {
        self.collected.borrow().warnings.clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        // A collector may outlive the thread's list of collectors, for example in another thread-local variable. Then there is nothing to
        // remove.
        let _ = COLLECTORS.try_with(|collectors| {
            collectors.borrow_mut().retain(|other| !Rc::ptr_eq(other, &self.collected));
        });
    }
}

/// Reports `warning` to the thread's innermost collector, or to the handler of the process if the thread has no collector. The collector
/// and the handler each receive a kind of warning once per line of code.
#[cold]
#[doc(hidden)]
pub fn emit(warning: Warning) {
    let key = warning.key();
    // While a thread ends, its list of collectors may already be destroyed. Then the handler gets the warning.
    let collector = COLLECTORS.try_with(|collectors| collectors.borrow().last().cloned()).unwrap_or_default();
    if let Some(collector) = collector {
        let mut collected = collector.borrow_mut();
        if collected.reported.insert(key) {
            collected.warnings.push(warning);
        }
        return;
    }
    if !REPORTED.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default().insert(key) {
        return;
    }
    // The read lock ends with this statement, because a handler may itself compute, warn, or set another handler.
    let handler = HANDLER.read().unwrap_or_else(PoisonError::into_inner).clone();
    match handler {
        Some(handler) => handler(&warning),
        None => stderr_handler(&warning),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(at: Site) -> Warning {
        Warning::Broadcast { shapes: (Shape::from([4, 1]), Shape::from([4])), at }
    }

    #[test]
    fn the_details_name_both_shapes() {
        let shapes = (Shape::from([4, 1]), Shape::from([4]));
        let text = Warning::Broadcast { shapes, at: Site::here("sub") }.details();
        assert!(text.contains("\n  self has shape [4, 1], other [4]\n  hint: "), "{text}");
        assert_eq!(Warning::Environment { value: "loud".into() }.details().lines().count(), 1);
    }

    #[test]
    fn a_line_is_reported_once_to_each_collector() {
        let here = Site::here("add");
        let outer = collect();
        emit(warning(here));
        {
            let inner = collect();
            emit(warning(here));
            emit(warning(here));
            emit(warning(Site::here("add")));
            assert_eq!(inner.warnings().len(), 2);
        }
        let later = Site::here("add");
        emit(warning(here));
        emit(warning(later));
        assert_eq!(outer.warnings(), [warning(here), warning(later)]);
    }

    /// A value that sets a handler when it is dropped. This shows that the handler's lock is free at that time.
    struct SetsAnother;

    impl Drop for SetsAnother {
        fn drop(&mut self) {
            set_handler(stderr_handler);
        }
    }

    /// The only test that sets handlers, because all tests share the handler of the process.
    #[test]
    fn the_handler_of_the_process_gets_each_line_once() {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&heard);
        let here = Site::here("add");
        let value = SetsAnother;
        set_handler(move |warning| {
            let _ = &value;
            // Other tests of this process may warn at the same time. These warnings are ignored.
            if warning.site() == Some(here) {
                sink.lock().unwrap().push(warning.to_string());
            }
        });
        emit(warning(here));
        assert_eq!(heard.lock().unwrap().len(), 1);
        emit(warning(here));
        // Drops the first handler and its `SetsAnother`, which then sets a handler once more.
        set_handler(stderr_handler);
        let line = here.location.line();
        let expected = format!(
            "{}:{line}: UserWarning: self and other do not have the same shape, but are broadcastable, and have the \
             same number of elements.\nChanging behavior in a backwards incompatible manner to broadcasting rather \
             than viewing as 1-dimensional.",
            file!()
        );
        assert_eq!(*heard.lock().unwrap(), [expected]);
    }

    /// A logger that stores the level, the target and the text of each message.
    struct Recorder(Mutex<Vec<(log::Level, String, String)>>);

    impl log::Log for Recorder {
        fn enabled(&self, _: &log::Metadata<'_>) -> bool {
            true
        }

        fn log(&self, record: &log::Record<'_>) {
            let line = (record.level(), record.target().to_owned(), record.args().to_string());
            self.0.lock().unwrap().push(line);
        }

        fn flush(&self) {}
    }

    #[test]
    fn the_logger_gets_the_text_with_its_target() {
        static RECORDER: Recorder = Recorder(Mutex::new(Vec::new()));
        log::set_logger(&RECORDER).expect("no other test sets a logger");
        log::set_max_level(log::LevelFilter::Warn);
        let warning = warning(Site::here("sub"));
        log_handler(&warning);
        let expected = (log::Level::Warn, "wengert".to_owned(), warning.to_string());
        assert!(RECORDER.0.lock().unwrap().contains(&expected));
    }

    /// The environment variable that makes [`child`] print.
    const CHILD: &str = "WENGERT_TEST_PRINTS_A_WARNING";

    /// Prints a warning if [`CHILD`] is set. Another test runs this test in a separate process.
    #[test]
    fn child() {
        if std::env::var_os(CHILD).is_some() {
            stderr_handler(&warning(Site::here("sub")));
        }
    }

    #[test]
    fn a_process_prints_warnings_to_standard_error() {
        let mut child = std::process::Command::new(std::env::current_exe().expect("this program has a path"));
        child.args(["--exact", "shape::compat::warning::tests::child", "--test-threads=1"]).env(CHILD, "1");
        let output = child.output().expect("the child starts");
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("UserWarning: self and other") && text.contains("other [4]\n  hint: "), "{text}");
    }
}
