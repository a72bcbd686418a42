//! Runs shape cases: calls on zeros that compare only the shape, the layout or the error.
//!
//! Most shape cases become calls of the dispatch for tensor cases. `broadcast_shapes`, `normal` and `bernoulli_` call the library directly.

use serde_json::Value as Json;
use wengert_tensor::ops::try_broadcast_shapes;
use wengert_tensor::{Generator, Scalar, Shape, Tensor};

use super::call::Call;
use super::compare;
use super::eager::Trouble;
use super::format::{Literal, Phase, ShapeCase, literal};
use super::json::Object;
use super::ops;
use super::value::{Given, Stop, Value};

type Zeros = Tensor<f64>;

/// Runs a shape case.
pub fn run(case: &ShapeCase) -> Result<(), Trouble> {
    let fields = Object::new(&case.fields)?;
    let result = outcome(&case.function, fields);
    match (result, &case.expected) {
        // PyTorch makes a tensor with a negative size, which has no elements. Here only an error is right.
        (result, Ok(expected)) if negative(expected) => match result {
            Err(Stop::Refused(_)) => Ok(()),
            _ => Err(Trouble::Differs("got a result, expected a refusal of the negative size".into())),
        },
        (Ok(outcome), Ok(expected)) => Ok(agree(&outcome, Object::new(expected)?)?),
        (Ok(outcome), Err(expected)) => Err(Trouble::Differs(format!(
            "got shape {}, expected '{}': {}",
            outcome.shape, expected.category, expected.message
        ))),
        (Err(Stop::Refused(refusal)), Err(expected)) => Ok(refusal.check(Phase::Forward, None, expected)?),
        (Err(stop), _) => Err(stop.into()),
    }
}

fn negative(expected: &Json) -> bool {
    let sizes = expected.get("shape").and_then(Json::as_array);
    sizes.is_some_and(|sizes| sizes.iter().any(|size| size.as_i64().is_some_and(|size| size < 0)))
}

/// The result of a call: its shape, and, if the case compares it, its layout and a flag that is true for a view of the input.
struct Outcome {
    shape: Shape,
    layout: Option<(Vec<isize>, usize, bool)>,
}

fn agree(outcome: &Outcome, expected: Object) -> Result<(), String> {
    compare::shapes("shape", &outcome.shape, &Shape::from(expected.sizes("shape")?))?;
    let Some((strides, offset, is_view)) = &outcome.layout else {
        return Ok(());
    };
    if expected.get("is_view").is_some() && outcome.shape.numel() > 0 && expected.flag("is_view")? != *is_view {
        return Err(format!("the result {} a view of the input", if *is_view { "is" } else { "is not" }));
    }
    if expected.get("strides").is_some() {
        let wanted = expected.strides("strides")?;
        let offsets = (*offset, expected.size("offset")?);
        compare::layout("layout", &outcome.shape, (strides, offsets.0), (&wanted, offsets.1))?;
    }
    Ok(())
}

fn outcome(function: &str, fields: Object) -> Result<Outcome, Stop> {
    let shaped = |name: &str| fields.sizes(name).map(|sizes| Shape::from(&sizes[..])).map_err(Stop::Malformed);
    let zeros = |name: &str| Ok::<_, Stop>(float(Tensor::zeros(&shaped(name)?)));
    let args = || match fields.get("args") {
        None => Ok(Vec::new()),
        Some(_) => fields.list("args", |value| Ok(given(&literal(value)?))).map_err(Stop::Malformed),
    };
    let argument = |name: &str| match fields.field(name).map_err(Stop::Malformed)? {
        Json::Null => Ok(Given::None),
        value => literal(value).map(|literal| given(&literal)).map_err(Stop::Malformed),
    };
    let list = || fields.list("shapes", sizes).map_err(Stop::Malformed);
    match function {
        "broadcast_shapes" => Ok(Outcome { shape: try_broadcast_shapes(list()?)?, layout: None }),
        "add" | "matmul" => call(function, vec![zeros("a")?, zeros("b")?], vec![]),
        "mse_loss" => {
            let none = ("reduction", Given::Text("none".into()));
            call("nn.functional.mse_loss", vec![zeros("a")?, zeros("b")?], vec![none])
        }
        "where" => call("where", vec![mask(&shaped("a")?), zeros("b")?, zeros("c")?], vec![]),
        "normal" => {
            let (mean, std) = (Zeros::zeros(shaped("a")?), Zeros::zeros(shaped("b")?));
            let drawn = Tensor::try_normal(&mean, &std, &mut Generator::new(1))?;
            Ok(Outcome { shape: drawn.shape().clone(), layout: None })
        }
        "bernoulli_" => {
            let mut target = Zeros::zeros(shaped("a")?);
            target.try_bernoulli_(&Zeros::zeros(shaped("b")?), &mut Generator::new(1))?;
            Ok(Outcome { shape: target.shape().clone(), layout: None })
        }
        "add_" | "copy_" => in_place(function, &shaped("a")?, vec![zeros("b")?]),
        "setitem_all" => {
            let everything = Given::List(vec![Given::Ellipsis]);
            in_place("setitem_", &shaped("a")?, vec![everything, zeros("b")?])
        }
        "take_along_dim" => {
            let index = Given::Tensor(Value::Int(Tensor::zeros(&shaped("b")?)));
            call("take_along_dim", vec![zeros("a")?, index], vec![("dim", Given::Integer(-1))])
        }
        "linear" => {
            let bias = if fields.get("c").is_none_or(Json::is_null) { Given::None } else { zeros("c")? };
            call("nn.functional.linear", vec![zeros("a")?, zeros("b")?, bias], vec![])
        }
        "addmm" | "baddbmm" | "addr" => call(function, vec![zeros("a")?, zeros("b")?, zeros("c")?], vec![]),
        "sum" | "amax" => {
            let named = vec![("dim", argument("dim")?), ("keepdim", argument("keepdim")?)];
            call(function, vec![zeros("shape")?], named)
        }
        "cat" | "stack" => {
            let tensors = list()?.into_iter().map(|sizes| float(Tensor::zeros(sizes))).collect();
            call(function, vec![Given::List(tensors), argument("dim")?], vec![])
        }
        "index_shape" => {
            let items = fields.list("items", index_item).map_err(Stop::Malformed)?;
            call("getitem", vec![zeros("shape")?, Given::List(items)], vec![])
        }
        "conv1d" | "conv2d" => {
            let mut all = vec![zeros("a")?, zeros("b")?, Given::None];
            all.extend(args()?);
            call(&format!("nn.functional.{function}"), all, vec![])
        }
        "max_pool1d" | "avg_pool2d" => {
            let named = Object::new(fields.field("kwargs").map_err(Stop::Malformed)?).map_err(Stop::Malformed)?;
            let mut keywords = Vec::new();
            for (name, value) in named.entries() {
                keywords.push((name.as_str(), given(&literal(value).map_err(Stop::Malformed)?)));
            }
            call(&format!("nn.functional.{function}"), vec![zeros("shape")?], keywords)
        }
        "broadcast_to" | "expand" | "permute" | "transpose" | "squeeze" | "unsqueeze" | "narrow" | "select"
        | "slice" | "view" | "reshape" | "flatten" | "sum_to_size" => {
            let shape = shaped("shape")?;
            let strides = match fields.get("strides") {
                None => shape.row_major_strides().to_vec(),
                Some(_) => fields.strides("strides").map_err(Stop::Malformed)?,
            };
            let input = strided(&shape, &strides)?;
            let mut all = vec![float(input.clone())];
            all.extend(args()?);
            view(function, all, &input)
        }
        other => Err(Stop::NotBuilt(other.to_owned())),
    }
}

/// Reads a shape; sizes may be negative if an error is expected.
fn sizes(value: &Json) -> Result<Vec<isize>, String> {
    let whole = |size: &Json| size.as_i64().and_then(|size| isize::try_from(size).ok()).ok_or("a size is no integer");
    Ok(value.as_array().ok_or("a shape is no list")?.iter().map(whole).collect::<Result<_, _>>()?)
}

/// Returns zeros with the given strides.
fn strided(shape: &Shape, strides: &[isize]) -> Result<Zeros, Stop> {
    let last: isize = shape.iter().zip(strides).map(|(&size, &stride)| (size as isize - 1).max(0) * stride).sum();
    Tensor::try_from_strided(vec![0.0; last.unsigned_abs() + 1], shape, strides, 0)
        .map_err(|error| Stop::Malformed(error.sentence()))
}

fn float(x: Zeros) -> Given<Zeros> {
    Given::Tensor(Value::Float(x))
}

fn mask(shape: &Shape) -> Given<Zeros> {
    Given::Tensor(Value::Bool(Tensor::zeros(shape)))
}

fn given(literal: &Literal) -> Given<Zeros> {
    match literal {
        Literal::None | Literal::Name(_) => Given::None,
        Literal::Flag(value) => Given::Flag(*value),
        Literal::Integer(value) => Given::Integer(*value),
        Literal::Number(value) => Given::Number(*value),
        Literal::Text(text) => Given::Text(text.clone()),
        Literal::DType(_) => Given::DType,
        Literal::Slice(bounds) => Given::Slice(*bounds),
        Literal::List(items) => Given::List(items.iter().map(given).collect()),
    }
}

/// Reads an item of an index list in the notation of shape cases.
fn index_item(value: &Json) -> Result<Given<Zeros>, String> {
    match value {
        Json::String(text) if text == ":" => Ok(Given::Slice([None; 3])),
        Json::String(text) if text == "..." => Ok(Given::Ellipsis),
        Json::Object(_) => {
            let sizes = Object::new(value)?.sizes("index")?;
            Ok(Given::Tensor(Value::Int(Tensor::zeros(&sizes[..]))))
        }
        value => Ok(given(&literal(value)?)),
    }
}

fn call(op: &str, args: Vec<Given<Zeros>>, kwargs: Vec<(&str, Given<Zeros>)>) -> Result<Outcome, Stop> {
    let constant = |data: &Zeros| data.clone();
    let results = ops::call(&Call::new(op, args, kwargs, &constant))?;
    Ok(Outcome { shape: first(op, &results)?.shape().clone(), layout: None })
}

fn view(op: &str, args: Vec<Given<Zeros>>, input: &Zeros) -> Result<Outcome, Stop> {
    let constant = |data: &Zeros| data.clone();
    let results = ops::call(&Call::new(op, args, vec![], &constant))?;
    let result = first(op, &results)?;
    let layout = (result.strides().to_vec(), result.layout().offset(), result.shares_storage(input));
    Ok(Outcome { shape: result.shape().clone(), layout: Some(layout) })
}

fn in_place(op: &str, shape: &Shape, others: Vec<Given<Zeros>>) -> Result<Outcome, Stop> {
    let constant = |data: &Zeros| data.clone();
    let args = std::iter::once(Given::None).chain(others).collect();
    let call = Call::new(op, args, vec![], &constant);
    call.given(0, "self");
    let mut target = Value::Float(Tensor::zeros(shape));
    ops::call_in_place(&call, &mut target)?;
    let shape = match &target {
        Value::Float(x) => x.shape().clone(),
        _ => return Err(Stop::Malformed(format!("{op} changed the element type"))),
    };
    Ok(Outcome { shape, layout: None })
}

/// Returns the first result of the operation `op`, which must be a floating-point tensor.
fn first<'r>(op: &str, results: &'r [Value<Zeros>]) -> Result<&'r Zeros, Stop> {
    match results.first() {
        Some(Value::Float(x)) => Ok(x),
        _ => Err(Stop::Malformed(format!("{op} gave no floating-point tensor, but elements of {}", f64::DTYPE))),
    }
}
