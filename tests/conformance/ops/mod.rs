//! Maps PyTorch's names to the library's methods, one file for each family. The same dispatch serves eager tensors and recorded
//! variables.
//!
//! A new family is a file with a function `attempt<A: Array>(call: &Call<A>) -> Attempt<A>` and a line in [`call`]. The
//! function returns `None` for names of other families. A family of in-place operations has `attempt<A: Array>(call: &Call<A>,
//! target: &mut Value<A>) -> Result<bool, Stop>` and a line in [`call_in_place`]. Read every argument of the operation from
//! `call` (`call.float(0, "self")`, `call.flag(2, "keepdim", false)`): a given argument that nobody reads makes the case count
//! as not built. A list of results has one `Value` for each.

mod activations;
mod arithmetic;
mod comparison;
mod convolution;
mod functions;
mod in_place;
mod indexing;
mod layers;
mod losses;
mod mixed;
mod order;
mod overwrite;
mod products;
mod reductions;
mod scatter;
mod shaping;
mod statistics;
mod views;

use super::call::Call;
use super::value::{Array, Results, Stop, Value};

/// Returns the results of a call. If no family has the operation, the call counts as not built.
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
        scatter::attempt::<A>,
        shaping::attempt::<A>,
        convolution::attempt::<A>,
        layers::attempt::<A>,
        losses::attempt::<A>,
    ];
    for attempt in families {
        if let Some(results) = attempt(call)? {
            return check_all_read(call).map(|()| results);
        }
    }
    Err(call.not_built(""))
}

/// Performs an operation whose name ends in `_` on `target`, its first argument.
pub fn call_in_place<A: Array>(call: &Call<A>, target: &mut Value<A>) -> Result<(), Stop> {
    let families = [overwrite::attempt::<A>, in_place::attempt::<A>, scatter::attempt_in_place::<A>];
    for attempt in families {
        if attempt(call, target)? {
            return check_all_read(call);
        }
    }
    Err(call.not_built(""))
}

fn check_all_read<A: Array>(call: &Call<A>) -> Result<(), Stop> {
    match call.unread() {
        None => Ok(()),
        Some(argument) => Err(call.not_built(&argument)),
    }
}

/// Returns one floating-point result.
fn float<A: Array>(x: A) -> Option<Vec<Value<A>>> {
    Some(vec![Value::Float(x)])
}

/// Returns several floating-point results.
fn floats<A: Array>(xs: Vec<A>) -> Option<Vec<Value<A>>> {
    Some(xs.into_iter().map(Value::Float).collect())
}
