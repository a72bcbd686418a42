//! The compatibility rules, and the lookup of the rules that apply. The rules of a scope come first, then the rules of the process, then
//! the environment variable, then the default.
//!
//! Most operations on two shapes look up the rules, so the lookup must be fast. The rules are packed into one byte, which is in a
//! thread-local cell, or in an atomic if no scope is open.

use std::cell::Cell;
use std::env::{self, VarError};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::Shape;
use crate::shape::compat::warning::{self, VARIABLE, Warning};

/// The reaction to a broadcast of operands that PyTorch before version 0.2 viewed as one-dimensional instead. The two results often differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastWarning {
    /// No reaction, as in today's PyTorch.
    Off,
    /// A [`Warning`], once per line of code. PyTorch 0.2: `torch.utils.backcompat.broadcast_warning.enabled = True`.
    Warn,
    /// An [`Error::Denied`](crate::Error::Denied) with the text of the warning.
    Deny,
}

/// The broadcasts that [`BroadcastWarning`] applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// PyTorch's condition: shapes that differ, broadcast, and have the same number of elements. The condition includes harmless shapes
    /// (`[1, n]` with `[n]`, which pairs the elements in order), and shapes that clearly intend broadcasting (`[n, 1]` with `[1, n]`).
    Backward,
    /// Likely mistakes only, such as `[n, 1]` with `[n]`. The shapes have the same number of elements but different ranks, and the result
    /// is larger than each operand.
    Suspicious,
}

impl Condition {
    /// Returns true if the condition holds for the broadcast of `a` and `b` to `joined`.
    pub(crate) fn holds(self, a: &Shape, b: &Shape, joined: &Shape) -> bool {
        match self {
            Condition::Backward => a != b && has_same_numel(a, b),
            // A result whose number of elements overflows is larger than both operands.
            Condition::Suspicious => {
                a.rank() != b.rank()
                    && has_same_numel(a, b)
                    && joined.checked_numel().is_none_or(|count| count > a.numel())
            }
        }
    }
}

/// Returns true if both shapes have the same number of elements. Returns false if a number of elements overflows.
pub(crate) fn has_same_numel(a: &Shape, b: &Shape) -> bool {
    matches!((a.checked_numel(), b.checked_numel()), (Some(a), Some(b)) if a == b)
}

/// Settings for shapes that old PyTorch, today's PyTorch and its notes on broadcasting treat differently.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; }
/// use wengert::tensor::compat::{BroadcastWarning, Condition, Rules};
///
/// let rules = Rules::default();
/// assert_eq!((rules.broadcast_warning, rules.when), (BroadcastWarning::Warn, Condition::Suspicious));
///
/// // PyTorch 0.2 with its warning enabled.
/// let old = Rules::pytorch().warn().when(Condition::Backward).legacy_pointwise(true);
/// assert!(old.legacy_pointwise);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Rules {
    /// The reaction to a broadcast that meets [`when`](Self::when).
    pub broadcast_warning: BroadcastWarning,
    /// The broadcasts that `broadcast_warning` applies to.
    pub when: Condition,
    /// True if two shapes that do not broadcast, but have the same number of elements, are viewed as one-dimensional. An operation in place
    /// does the same if the broadcast shape is not the shape of its first operand. The result then has the shape of the first operand. Each
    /// line of code in which this happens warns, whatever `broadcast_warning` is.
    pub legacy_pointwise: bool,
    /// True if a tensor without dimensions may be an operand. A plain number may always be an operand, because it is not a tensor.
    pub zero_dim: bool,
}

impl Default for Rules {
    /// Returns the rules of today's PyTorch, with a warning under [`Condition::Suspicious`].
    fn default() -> Self {
        Rules {
            broadcast_warning: BroadcastWarning::Warn,
            when: Condition::Suspicious,
            legacy_pointwise: false,
            zero_dim: true,
        }
    }
}

impl Rules {
    /// Returns the rules of today's PyTorch: no warning, no 1-D view, tensors without dimensions allowed.
    pub fn pytorch() -> Self {
        Rules { broadcast_warning: BroadcastWarning::Off, ..Rules::default() }
    }

    /// Returns the default rules, except that each tensor must have at least one dimension, as in PyTorch's notes on broadcasting.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::compat::Rules;
    /// use wengert::prelude::*;
    ///
    /// let (x, number) = (Tensor::<f32>::ones([2, 2]), Tensor::scalar(3.0));
    /// assert_eq!(x.mul(&number), Tensor::full([2, 2], 3.0));
    ///
    /// let _rules = Rules::strict().scope();
    /// assert!(x.try_mul(&number).is_err());
    /// assert!(x.try_mul(&number.reshape([1])).is_ok());
    /// assert!(x.try_mul(3.0).is_ok());
    /// ```
    pub fn strict() -> Self {
        Rules::default().zero_dim(false)
    }

    /// Returns these rules with `broadcast_warning` replaced.
    pub fn broadcast_warning(self, broadcast_warning: BroadcastWarning) -> Self {
        Rules { broadcast_warning, ..self }
    }

    /// Returns these rules without broadcast warnings.
    pub fn off(self) -> Self {
        self.broadcast_warning(BroadcastWarning::Off)
    }

    /// Returns these rules with warnings of the broadcasts that meet [`when`](Rules::when).
    pub fn warn(self) -> Self {
        self.broadcast_warning(BroadcastWarning::Warn)
    }

    /// Returns these rules with errors for the broadcasts that meet [`when`](Rules::when).
    pub fn deny(self) -> Self {
        self.broadcast_warning(BroadcastWarning::Deny)
    }

    /// Returns these rules with `when` replaced.
    pub fn when(self, when: Condition) -> Self {
        Rules { when, ..self }
    }

    /// Returns these rules with `legacy_pointwise` replaced. If it is true, operands that do not broadcast are viewed as one-dimensional if
    /// they have the same number of elements.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
    /// use wengert::tensor::compat::{self, Rules};
    /// use wengert::prelude::*;
    ///
    /// let (x, y) = (Tensor::<f32>::ones([4, 2]), Tensor::<f32>::ones([8]));
    /// assert!(x.try_add(&y).is_err());
    ///
    /// let _rules = Rules::default().legacy_pointwise(true).scope();
    /// let warnings = compat::collect();
    /// assert_eq!(x.add(&y), Tensor::full([4, 2], 2.0));
    /// assert_eq!(warnings.warnings().len(), 1);
    /// ```
    pub fn legacy_pointwise(self, legacy_pointwise: bool) -> Self {
        Rules { legacy_pointwise, ..self }
    }

    /// Returns these rules with tensors without dimensions allowed or refused.
    pub fn zero_dim(self, zero_dim: bool) -> Self {
        Rules { zero_dim, ..self }
    }

    /// Returns the rules that apply on this thread at the moment.
    pub fn current() -> Self {
        Rules::unpack(SCOPE.get()).unwrap_or_else(Rules::process)
    }

    /// Applies these rules on this thread until the returned guard is dropped, which also happens if the thread panics. Scopes can be
    /// nested.
    ///
    /// ```
    /// # mod wengert { pub use wengert_tensor as tensor; }
    /// use wengert::tensor::compat::Rules;
    ///
    /// let before = Rules::current();
    /// {
    ///     let _outer = Rules::strict().scope();
    ///     let _inner = Rules::current().deny().scope();
    ///     assert_eq!(Rules::current(), Rules::strict().deny());
    /// }
    /// assert_eq!(Rules::current(), before);
    /// ```
    #[must_use = "the rules hold until the guard is dropped"]
    pub fn scope(self) -> Guard {
        Guard { before: SCOPE.replace(self.pack()), thread: PhantomData }
    }

    fn process() -> Self {
        Rules::unpack(PROCESS.load(Ordering::Relaxed)).unwrap_or_else(read_environment)
    }

    fn pack(self) -> u8 {
        let strict = u8::from(!self.zero_dim);
        STRICTNESS.fetch_max(1 + strict, Ordering::Relaxed);
        let warning = match self.broadcast_warning {
            BroadcastWarning::Off => 0,
            BroadcastWarning::Warn => WARN,
            BroadcastWarning::Deny => DENY,
        };
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let backward = flag(self.when == Condition::Backward, BACKWARD);
        SET | warning | backward | flag(self.legacy_pointwise, LEGACY) | flag(self.zero_dim, ZERO_DIM)
    }

    fn unpack(bits: u8) -> Option<Self> {
        let broadcast_warning = match bits & (WARN | DENY) {
            0 => BroadcastWarning::Off,
            WARN => BroadcastWarning::Warn,
            _ => BroadcastWarning::Deny,
        };
        let when = if bits & BACKWARD == 0 { Condition::Suspicious } else { Condition::Backward };
        let (legacy_pointwise, zero_dim) = (bits & LEGACY != 0, bits & ZERO_DIM != 0);
        (bits & SET != 0).then_some(Rules { broadcast_warning, when, legacy_pointwise, zero_dim })
    }
}

const WARN: u8 = 1;
const DENY: u8 = 1 << 1;
const BACKWARD: u8 = 1 << 2;
const LEGACY: u8 = 1 << 3;
const ZERO_DIM: u8 = 1 << 4;
/// This bit is set in all packed rules, so that the byte 0 can mean "no rules".
const SET: u8 = 1 << 7;

thread_local! {
    /// The packed rules of the innermost scope of this thread, or 0 if there is no scope.
    static SCOPE: Cell<u8> = const { Cell::new(0) };
}

/// The packed rules of the process. The value is 0 until [`set_process`] is called or the environment variable is read.
static PROCESS: AtomicU8 = AtomicU8::new(0);

/// The state from which `never_strict` is computed. It is 0 before any rules exist, and 1 while all rules allow tensors without dimensions.
/// It is 2 after the first rules that refuse these tensors.
static STRICTNESS: AtomicU8 = AtomicU8::new(0);

/// Returns true if rules exist and no thread has ever had rules that refuse tensors without dimensions. The check for tensors without
/// dimensions calls this function first, because the lookup of a thread's rules is slower.
#[inline]
pub(crate) fn never_strict() -> bool {
    STRICTNESS.load(Ordering::Relaxed) == 1
}

/// A guard that applies the rules of a [scope](Rules::scope) on its thread until it is dropped. Guards must be dropped in reverse order, as
/// at the end of a block.
#[derive(Debug)]
pub struct Guard {
    before: u8,
    /// This field makes the guard not `Send`, because the guard restores the rules of the thread that created it.
    thread: PhantomData<*const ()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        SCOPE.set(self.before);
    }
}

/// Applies `rules` on every thread without an open [scope](Rules::scope). These rules override the environment variable.
///
/// ```
/// # mod wengert { pub use wengert_tensor as tensor; }
/// use wengert::tensor::compat::{self, Rules};
///
/// compat::set_process(Rules::pytorch());
/// assert_eq!(std::thread::spawn(Rules::current).join().unwrap(), Rules::pytorch());
/// ```
pub fn set_process(rules: Rules) {
    if PROCESS.swap(rules.pack(), Ordering::Relaxed) == 0 {
        // The argument `rules` replaces the rules of the environment variable. If the variable has an invalid value, this is still
        // reported.
        if let Err(value) = from_environment() {
            warning::emit(Warning::Environment { value });
        }
    }
}

/// Reads the rules from the environment variable, and makes them the rules of the process unless another thread has set others. Returns the
/// rules of the process.
#[cold]
fn read_environment() -> Rules {
    let (rules, bad) = match from_environment() {
        Ok(rules) => (rules, None),
        Err(value) => (Rules::default(), Some(value)),
    };
    // Another thread may have set the rules first. The rules of that thread then apply, and that thread reports an invalid value.
    match PROCESS.compare_exchange(0, rules.pack(), Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => {
            if let Some(value) = bad {
                warning::emit(Warning::Environment { value });
            }
            rules
        }
        Err(set) => Rules::unpack(set).unwrap_or(rules),
    }
}

/// Returns the rules that the environment variable sets, or the default rules if it is missing or empty. If the variable's value is
/// invalid, returns this value as the error.
fn from_environment() -> Result<Rules, String> {
    match env::var(VARIABLE) {
        Ok(value) => parse(&value).ok_or(value),
        Err(VarError::NotPresent) => Ok(Rules::default()),
        Err(VarError::NotUnicode(value)) => Err(value.to_string_lossy().into_owned()),
    }
}

/// Parses the value of the environment variable. Returns `None` if it is invalid.
fn parse(value: &str) -> Option<Rules> {
    let value = value.trim().to_ascii_lowercase();
    if value.is_empty() {
        return Some(Rules::default());
    }
    let (warning, condition) = value.split_once(':').unwrap_or((&value, "suspicious"));
    let rules = Rules::default().when(match condition {
        "backward" => Condition::Backward,
        "suspicious" => Condition::Suspicious,
        _ => return None,
    });
    match warning {
        "off" => Some(rules.off()),
        "warn" => Some(rules.warn()),
        "deny" => Some(rules.deny()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_survives_packing() {
        for broadcast_warning in [BroadcastWarning::Off, BroadcastWarning::Warn, BroadcastWarning::Deny] {
            for when in [Condition::Backward, Condition::Suspicious] {
                for (legacy_pointwise, zero_dim) in [(false, false), (false, true), (true, false), (true, true)] {
                    let rules = Rules { broadcast_warning, when, legacy_pointwise, zero_dim };
                    assert_eq!(Rules::unpack(rules.pack()), Some(rules));
                }
            }
        }
        assert_eq!(Rules::unpack(0), None);
    }

    #[test]
    fn values_of_the_environment_variable() {
        let rules = Rules::default();
        let table = [
            ("", Some(rules)),
            ("off", Some(rules.off())),
            ("warn", Some(rules.warn())),
            (" Deny ", Some(rules.deny())),
            ("warn:backward", Some(rules.when(Condition::Backward))),
            ("deny:suspicious", Some(rules.deny())),
            ("loud", None),
            ("warn:", None),
            ("warn:always", None),
            ("backward", None),
        ];
        for (value, expected) in table {
            assert_eq!(parse(value), expected, "{value:?}");
        }
    }

    #[test]
    fn a_panic_ends_its_scope() {
        let before = Rules::current();
        let panicked = std::panic::catch_unwind(|| {
            let _rules = Rules::strict().deny().scope();
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(panicked.is_err());
        assert_eq!(Rules::current(), before);
    }

    #[test]
    fn a_scope_applies_to_its_thread_only() {
        let _rules = Rules::strict().deny().scope();
        let elsewhere = std::thread::spawn(Rules::current).join().unwrap();
        assert!(elsewhere.zero_dim);
    }

    #[test]
    fn the_named_rules() {
        assert_eq!(Rules::strict(), Rules { zero_dim: false, ..Rules::default() });
        assert!(Rules::default().zero_dim);
        let warnings = |rules: Rules| rules.broadcast_warning;
        let deny = Rules::default().deny();
        assert_eq!(
            (warnings(deny), warnings(deny.warn()), warnings(deny.off())),
            (BroadcastWarning::Deny, BroadcastWarning::Warn, BroadcastWarning::Off)
        );
    }

    #[test]
    fn strict_rules_are_remembered_for_the_fast_check() {
        let _ = Rules::strict().scope();
        assert!(!never_strict());
    }

    /// The environment variable that makes [`child`] run. It contains the expected rules, or `set` for rules that [`set_process`] sets.
    const CHILD: &str = "WENGERT_TEST_RULES_OF_A_PROCESS";

    /// Compares the current rules with the expected rules, and counts the warnings about an invalid value. Another test runs this test in a
    /// separate process. Otherwise this test does nothing.
    #[test]
    fn child() {
        let Ok(expected) = env::var(CHILD) else { return };
        let warnings = crate::shape::compat::collect();
        if expected == "set" {
            set_process(Rules::strict());
        }
        let rules = if expected == "set" { Rules::strict() } else { parse(&expected).expect("rules") };
        assert!(expected == "set" || !never_strict());
        assert_eq!(Rules::current(), rules);
        assert_eq!(never_strict(), expected != "set");
        let is_invalid = from_environment().is_err();
        assert_eq!(warnings.warnings().len(), usize::from(is_invalid));
    }

    #[test]
    fn a_process_reads_its_environment_once() {
        for (value, expected) in [("deny", "deny"), ("", ""), ("loud", ""), ("loud", "set"), ("deny", "set")] {
            let mut child = std::process::Command::new(env::current_exe().expect("this program has a path"));
            child.args(["--exact", "shape::compat::rules::tests::child", "--test-threads=1"]);
            let output = child.env(VARIABLE, value).env(CHILD, expected).output().expect("the child starts");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{value} {expected}: {text}");
        }
    }
}
