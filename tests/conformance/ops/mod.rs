//! From PyTorch's names to the library's methods, one file per family. The same dispatch serves eager tensors and recorded
//! variables.
//!
//! A new family is a file with a function `attempt<A: Array>(call: &Call<A>) -> Attempt<A>`, which gives `None` for names that
//! are not its own, and a line in [`call`]; a family of in-place operations has
//! `attempt<A: Array>(call: &Call<A>, target: &mut Value<A>) -> Result<bool, Stop>` and a line in [`call_in_place`]. Ask `call`
//! for every argument that the operation has (`call.float(0, "self")`, `call.flag(2, "keepdim", false)`): one that was given
//! and that nobody asked for makes the case count as not built. A list of results is one `Value` each.

mod activations;
mod arithmetic;
mod comparison;
mod functions;
mod in_place;
mod indexing;
mod mixed;
mod order;
mod overwrite;
mod products;
mod reductions;
mod statistics;
mod views;

use super::call::Call;
use super::value::{Array, Results, Stop, Value};

/// The results of a call. An operation that no family has is not built.
pub fn call<A: Array>(call: &Call<A>) -> Results<A> {
    let families = [
        activations::attempt::<A>,
        arithmetic::attempt::<A>,
        mixed::attempt::<A>,
        functions::attempt::<A>,
        comparison::attempt::<A>,
        reductions::attempt::<A>,
        order::attempt::<A>,
        statistics::attempt::<A>,
        views::attempt::<A>,
        products::attempt::<A>,
        indexing::attempt::<A>,
    ];
    for attempt in families {
        if let Some(results) = attempt(call)? {
            return all_seen(call).map(|()| results);
        }
    }
    Err(call.not_built(""))
}

/// Performs an operation whose name ends in `_` on `target`, its first argument.
pub fn call_in_place<A: Array>(call: &Call<A>, target: &mut Value<A>) -> Result<(), Stop> {
    let families = [overwrite::attempt::<A>, in_place::attempt::<A>];
    for attempt in families {
        if attempt(call, target)? {
            return all_seen(call);
        }
    }
    Err(call.not_built(""))
}

fn all_seen<A: Array>(call: &Call<A>) -> Result<(), Stop> {
    match call.unseen() {
        None => Ok(()),
        Some(argument) => Err(call.not_built(&argument)),
    }
}

/// One floating-point result.
fn float<A: Array>(x: A) -> Option<Vec<Value<A>>> {
    Some(vec![Value::Float(x)])
}
