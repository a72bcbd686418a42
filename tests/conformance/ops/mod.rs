//! From PyTorch's names to the library's methods, one file per family. The same dispatch serves eager tensors and recorded
//! variables.

mod arithmetic;
mod comparison;
mod functions;
mod in_place;
mod indexing;
mod products;
mod reductions;
mod views;

use super::call::Call;
use super::value::{Array, Results, Stop, Value};

/// The results of a call. An operation that no family has is not built.
pub fn call<A: Array>(call: &Call<A>) -> Results<A> {
    let families = [
        arithmetic::attempt::<A>,
        functions::attempt::<A>,
        comparison::attempt::<A>,
        reductions::attempt::<A>,
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
    if in_place::attempt(call, target)? { all_seen(call) } else { Err(call.not_built("")) }
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
