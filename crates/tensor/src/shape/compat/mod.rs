//! Compatibility with PyTorch before it had broadcasting.
//!
//! Before version 0.2, PyTorch ran pointwise operations on tensors with different shapes but the same number of elements by viewing both as
//! one-dimensional ("1-D view"). Broadcasting silently changed the result of `add(ones(4, 1), randn(4))` from `[4, 1]` to `[4, 4]`.
//! Broadcasts of this kind are still a frequent silent mistake in training scripts. The difference of predictions `[n, 1]` and targets `[n]`
//! is `[n, n]`, and the mean of this difference does not show the mistake.
//!
//! | setting | effect | default here | PyTorch today |
//! |---|---|---|---|
//! | [`broadcast_warning`] | warns of broadcasts of operands that have a 1-D view too, or refuses these broadcasts | warn | off: its switch does nothing |
//! | [`when`] | the broadcasts that `broadcast_warning` applies to | [`Suspicious`] | [`Backward`] |
//! | [`legacy_pointwise`] | uses the 1-D view if shapes do not broadcast | off | removed |
//! | [`zero_dim`] | allows tensors without dimensions | yes | yes |
//!
//! [`broadcast_warning`]: Rules::broadcast_warning
//! [`when`]: Rules::when
//! [`legacy_pointwise`]: Rules::legacy_pointwise
//! [`zero_dim`]: Rules::zero_dim
//! [`Suspicious`]: Condition::Suspicious
//! [`Backward`]: Condition::Backward
//!
//! [`Rules`] apply to a scope of one thread ([`Rules::scope`]) or to the process ([`set_process`]). The environment variable
//! `WENGERT_BROADCAST_WARNING` can set the first two rules of the table: to `off`, `warn` or `deny`, optionally with the condition, as in
//! `warn:backward`. The rules of the innermost scope have priority, then the rules of the process, then the environment variable. Each line
//! of code warns once of each kind of problem. A warning goes to a [`Collector`] of the thread, or else to the process's handler
//! ([`set_handler`]), which prints to standard error by default.
//!
//! ```
//! # mod wengert { pub use wengert_tensor as tensor; pub use wengert_tensor::prelude; }
//! use wengert::tensor::compat::{self, Rules};
//! use wengert::prelude::*;
//!
//! let prediction = Tensor::<f32>::ones([4, 1]);
//! let target = Tensor::<f32>::ones([4]);
//!
//! let warnings = compat::collect();
//! let difference = &prediction - &target;
//! assert_eq!(difference.shape(), &[4, 4]); // not the [4] that was meant
//! assert!(warnings.warnings()[0].to_string().contains("UserWarning: self and other do not have the same shape"));
//!
//! let _rules = Rules::default().deny().scope();
//! assert!(prediction.try_sub(&target).is_err());
//! assert!(prediction.try_sub(&target.unsqueeze(1)).is_ok());
//! ```
//!
//! This module knows shapes and lines of code, but no elements. The module decides whether to expand both operands, to view one in the
//! shape of the other, or to refuse them. The operations, eager and recorded, carry out the decision.

mod resolve;
mod rules;
mod warning;

pub use resolve::zero_dim_allowed;
#[doc(hidden)]
pub use resolve::{BroadcastRule, Resolved, accepts_equal, only_expands, rules_for};
pub(crate) use resolve::{check_zero_dim, in_place_error, resolve};
pub use rules::{BroadcastWarning, Condition, Guard, Rules, set_process};
pub use warning::VARIABLE;
#[doc(hidden)]
pub use warning::emit;
pub use warning::{Collector, Warning, collect, log_handler, set_handler, stderr_handler};
