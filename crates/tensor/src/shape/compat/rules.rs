//! The rules, and which of them are in force: a scope's, else the process's, else the environment's, else the default.
//!
//! Every operation on two shapes looks them up, so they fit into a byte: one thread-local cell, and one atomic if no scope is open.

use std::cell::Cell;
use std::env::{self, VarError};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::Shape;
use crate::shape::compat::warning::{self, VARIABLE, Warning};

/// What happens at a broadcast for which the older 1-D view gives another result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BroadcastWarning {
    /// Nothing, as in today's PyTorch.
    Off,
    /// A [`Warning`], once per line of code. PyTorch 0.2: `torch.utils.backcompat.broadcast_warning.enabled = True`.
    Warn,
    /// [`Error::Denied`](crate::Error::Denied), with the warning's text.
    Deny,
}

/// The broadcasts that [`BroadcastWarning`] applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Condition {
    /// PyTorch's condition: shapes that differ, broadcast, and have equal element counts. It includes cases where both readings
    /// give the same elements (`[1, n]` with `[n]`) or broadcasting is clearly intended (`[n, 1]` with `[1, n]`).
    Backward,
    /// The likely mistake only: equal element counts, different ranks, and a result larger than both. `[n, 1]` with `[n]`.
    Suspicious,
}

impl Condition {
    /// Whether the condition holds for the broadcast of `a` and `b` to `joined`.
    pub(crate) fn holds(self, a: &Shape, b: &Shape, joined: &Shape) -> bool {
        match self {
            Condition::Backward => a != b && same_count(a, b),
            // A result whose element count overflows is larger than any other.
            Condition::Suspicious => {
                a.rank() != b.rank() && same_count(a, b) && joined.checked_numel().is_none_or(|count| count > a.numel())
            }
        }
    }
}

/// Whether both have the same number of elements and it does not overflow.
pub(crate) fn same_count(a: &Shape, b: &Shape) -> bool {
    matches!((a.checked_numel(), b.checked_numel()), (Some(a), Some(b)) if a == b)
}

/// How operations treat shapes on which PyTorch before broadcasting, today's PyTorch, and its notes differ.
///
/// ```
/// use wengert_tensor::compat::{BroadcastWarning, Condition, Rules};
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
    /// What happens at a broadcast that meets [`when`](Self::when).
    pub broadcast_warning: BroadcastWarning,
    /// The condition for that.
    pub when: Condition,
    /// Whether shapes that do not broadcast but have equal element counts are viewed as one-dimensional, with a result in the first
    /// operand's shape. Each line that does this warns, whatever `broadcast_warning` is.
    pub legacy_pointwise: bool,
    /// Whether a tensor without dimensions may be an operand beside others. A plain number always may: it is not a tensor.
    pub zero_dim: bool,
}

impl Default for Rules {
    /// Today's PyTorch, with a warning under [`Condition::Suspicious`].
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
    /// Exactly today's PyTorch: no warning, no fallback, 0-dim tensors allowed.
    pub fn pytorch() -> Self {
        Rules { broadcast_warning: BroadcastWarning::Off, ..Rules::default() }
    }

    /// The rule of PyTorch's broadcasting notes: each tensor has at least one dimension. Otherwise the default.
    ///
    /// ```
    /// use wengert_tensor::compat::Rules;
    /// use wengert_tensor::prelude::*;
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

    /// These rules with another [`broadcast_warning`](Self::broadcast_warning).
    pub fn broadcast_warning(self, broadcast_warning: BroadcastWarning) -> Self {
        Rules { broadcast_warning, ..self }
    }

    /// These rules without broadcast warnings.
    pub fn off(self) -> Self {
        self.broadcast_warning(BroadcastWarning::Off)
    }

    /// These rules with warnings.
    pub fn warn(self) -> Self {
        self.broadcast_warning(BroadcastWarning::Warn)
    }

    /// These rules with errors instead of warnings.
    pub fn deny(self) -> Self {
        self.broadcast_warning(BroadcastWarning::Deny)
    }

    /// These rules with another condition.
    pub fn when(self, when: Condition) -> Self {
        Rules { when, ..self }
    }

    /// These rules with or without the 1-D fallback.
    ///
    /// ```
    /// use wengert_tensor::compat::{self, Rules};
    /// use wengert_tensor::prelude::*;
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

    /// These rules with or without tensors that have no dimensions.
    pub fn zero_dim(self, zero_dim: bool) -> Self {
        Rules { zero_dim, ..self }
    }

    /// The rules in force on this thread.
    pub fn current() -> Self {
        Rules::unpack(SCOPE.get()).unwrap_or_else(Rules::process)
    }

    /// Puts these rules in force on this thread until the guard is dropped (also by a panic). Scopes can be nested.
    ///
    /// ```
    /// use wengert_tensor::compat::Rules;
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
/// Distinguishes packed rules from none.
const SET: u8 = 1 << 7;

thread_local! {
    /// Packed rules of the innermost scope; 0 if there is none.
    static SCOPE: Cell<u8> = const { Cell::new(0) };
}

/// Packed rules of the process; 0 until the environment is read.
static PROCESS: AtomicU8 = AtomicU8::new(0);

/// 0 until rules are first looked up; 1 as long as no rules anywhere refuse tensors without dimensions; 2 afterwards.
static STRICTNESS: AtomicU8 = AtomicU8::new(0);

/// Whether no thread has ever had rules that refuse tensors without dimensions, which every operation checks.
#[inline]
pub(crate) fn never_strict() -> bool {
    STRICTNESS.load(Ordering::Relaxed) == 1
}

/// Keeps the rules of a [scope](Rules::scope) in force. Belongs to one thread; guards must be dropped in reverse order, as at the
/// end of a block.
#[derive(Debug)]
pub struct Guard {
    before: u8,
    /// Not `Send`: a guard restores the rules of the thread that created it.
    thread: PhantomData<*const ()>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        SCOPE.set(self.before);
    }
}

/// Puts `rules` in force on every thread without an open [scope](Rules::scope). Overrides the environment variable.
///
/// ```
/// use wengert_tensor::compat::{self, Rules};
///
/// compat::set_process(Rules::pytorch());
/// assert_eq!(std::thread::spawn(Rules::current).join().unwrap(), Rules::pytorch());
/// ```
pub fn set_process(rules: Rules) {
    if PROCESS.swap(rules.pack(), Ordering::Relaxed) == 0 {
        // The variable has no effect now, but an invalid value is still reported.
        if let Err(value) = from_environment() {
            warning::emit(Warning::Environment { value });
        }
    }
}

/// Reads the environment when the process's rules are first needed.
#[cold]
fn read_environment() -> Rules {
    let (rules, bad) = match from_environment() {
        Ok(rules) => (rules, None),
        Err(value) => (Rules::default(), Some(value)),
    };
    // If another thread was first, its rules apply, and it has reported an invalid value.
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

/// The rules in the environment variable (the default if it is absent or empty), or its value if that is invalid.
fn from_environment() -> Result<Rules, String> {
    match env::var(VARIABLE) {
        Ok(value) => parse(&value).ok_or(value),
        Err(VarError::NotPresent) => Ok(Rules::default()),
        Err(VarError::NotUnicode(value)) => Err(value.to_string_lossy().into_owned()),
    }
}

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
    fn a_scope_is_of_its_thread() {
        let _rules = Rules::strict().deny().scope();
        let elsewhere = std::thread::spawn(Rules::current).join().unwrap();
        assert!(elsewhere.zero_dim);
    }
}
