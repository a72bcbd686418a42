//! Reads and checks a conformance set. FORMAT.md beside the data describes the format.
//!
//! This module knows no operation. An error in a case names the case. A set that cannot be read completely is not run.

use std::fs;
use std::path::Path;

use serde_json::Value;
use wengert_tensor::DType;

use super::json::{Object, brief};
use super::store::Store;

/// A whole conformance set: its cases, and the stored tensors.
pub struct Set {
    /// The program that computed the expected values, for example `torch 2.15.0 cpu`.
    pub reference: String,
    pub cases: Vec<Case>,
    pub shape_cases: Vec<ShapeCase>,
    pub store: Store,
}

/// A short program with its expected results.
pub struct Case {
    pub id: String,
    pub op: String,
    pub group: String,
    pub inputs: Vec<Input>,
    pub steps: Vec<Step>,
    pub outputs: Vec<Output>,
    /// The incoming gradients of the outputs that require a gradient; `None` stands for a gradient of ones. Empty if the case has no
    /// gradient.
    pub grad_outputs: Vec<Option<Window>>,
    /// The key of each input's expected gradient, if gradients are expected.
    pub grads: Option<Vec<Option<String>>>,
    pub second: Option<Second>,
    /// True if the case compares the written buffer.
    pub base_after: bool,
    pub backward_times: usize,
    pub error: Option<Expected>,
    pub out: Mode,
    pub grad: Mode,
    pub second_mode: Mode,
}

/// A call that compares only shapes, layouts or errors. `fields` has the fields of the case in `cases.json`.
pub struct ShapeCase {
    pub id: String,
    pub function: String,
    pub fields: Value,
    pub expected: Result<Value, Expected>,
}

/// A window over a stored tensor, which is used as a flat buffer.
pub struct Window {
    pub dtype: DType,
    pub shape: Vec<usize>,
    pub base: String,
    pub strides: Vec<isize>,
    pub offset: usize,
}

/// A named input of a case.
pub struct Input {
    pub name: String,
    pub window: Window,
    /// True if the input is a leaf that requires a gradient.
    pub grad: bool,
}

/// A step of a case's program: a call of an operation.
pub struct Step {
    pub op: String,
    pub args: Vec<Literal>,
    pub kwargs: Vec<(String, Literal)>,
    pub out: Vec<String>,
}

/// An argument of a step as the set writes it, before names are replaced by values.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    None,
    Flag(bool),
    Integer(i64),
    Number(f64),
    Text(String),
    DType(DType),
    Slice([Option<i64>; 3]),
    /// The input or earlier result of this name.
    Name(String),
    List(Vec<Literal>),
}

/// A result of a case's program that is compared.
pub struct Output {
    pub name: String,
    pub dtype: DType,
    /// The key of the expected tensor.
    pub tensor: String,
    pub requires_grad: bool,
    /// Strides and offset, if the reference returns a view.
    pub view: Option<(Vec<isize>, usize)>,
}

/// The second-order phase of a case: the weights `v` of the first gradients, and the expected values or the expected
/// error.
pub struct Second {
    pub v: Vec<Option<String>>,
    pub expected: Result<SecondValues, Expected>,
}

/// The expected gradients of the sum of the first gradients times `v`, by inputs and by upstream gradients. `None` stands for zeros.
pub struct SecondValues {
    pub grad_inputs: Vec<Option<String>>,
    pub grad_grad_outputs: Vec<Option<String>>,
}

/// An error that a case expects.
#[derive(Clone, Debug)]
pub struct Expected {
    pub phase: Phase,
    /// The index of the failing step, for an error in the forward phase.
    pub step: Option<usize>,
    pub category: String,
    pub message: String,
}

/// The phase that raises an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Forward,
    Backward,
    DoubleBackward,
}

/// The way in which floating-point numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    Bits,
    Value,
    Close { rtol: f64, atol: f64 },
}

impl Set {
    /// Reads the set in `folder`.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join("cases.json");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let index: Value = serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let named = |error: String| format!("{}: {error}", path.display());
        let index = Object::new(&index).map_err(named)?;
        let version = index.integer("format_version").map_err(named)?;
        if version != 1 {
            return Err(named(format!("format version {version} is not supported, only 1 is")));
        }
        let store = Store::read(&folder.join(index.text("tensors_file").map_err(named)?))?;
        let cases = index.list("cases", |value| labelled(value, |object| case(object, &store))).map_err(named)?;
        let shape_cases = index.list("shape_cases", |value| labelled(value, |_| shape_case(value))).map_err(named)?;
        for (field, found) in
            [("n_cases", cases.len()), ("n_shape_cases", shape_cases.len()), ("n_tensors", store.len())]
        {
            let expected = index.size(field).map_err(named)?;
            if expected != found {
                return Err(named(format!("'{field}' is {expected}, but there are {found}")));
            }
        }
        if cases.is_empty() && shape_cases.is_empty() {
            return Err(named("the set has no cases".into()));
        }
        Ok(Set { reference: index.text("reference").map_err(named)?, cases, shape_cases, store })
    }
}

/// Reads an object with `read` and puts the id of the object before its errors.
fn labelled<'j, T>(value: &'j Value, read: impl Fn(Object<'j>) -> Result<T, String>) -> Result<T, String> {
    let object = Object::new(value)?;
    let id = object.text("id")?;
    read(object).map_err(|error| format!("case {id}: {error}"))
}

fn case(object: Object, store: &Store) -> Result<Case, String> {
    let error = object.get("error").map(expected).transpose()?;
    let forward_error = error.as_ref().is_some_and(|error| error.phase == Phase::Forward);
    let inputs = object.list("inputs", |value| input(value, store))?;
    let steps = object.list("steps", step)?;
    check_names(&inputs, &steps)?;
    let outputs = if forward_error { Vec::new() } else { object.list("outputs", |value| output(value, store))? };
    let grad_outputs = match object.get("grad_outputs") {
        None => Vec::new(),
        Some(_) => object.list("grad_outputs", |value| match value {
            Value::Null => Ok(None),
            value => window(Object::new(value)?, store).map(Some),
        })?,
    };
    let keys = |name: &str| object.list(name, |value| tensor_key(value, store));
    let grads = object.get("grads").map(|_| keys("grads")).transpose()?;
    if let Some(grads) = &grads {
        let wanted = outputs.iter().filter(|output| output.requires_grad).count();
        if grads.len() != inputs.len() || grad_outputs.len() != wanted {
            return Err("'grads' or 'grad_outputs' has the wrong length".into());
        }
    }
    let second = object.get("second").map(|value| second(value, store)).transpose()?;
    let mode = |name: &str| match object.get("cmp").map(Object::new).transpose()? {
        None if forward_error => Ok(Mode::Bits),
        None => Err("field 'cmp' is missing".into()),
        Some(modes) => match modes.get(name) {
            None => Ok(Mode::Bits),
            Some(_) => mode(&modes.text(name)?, object),
        },
    };
    let base_after = object.get("base_after").is_some();
    let backward_times = if object.get("backward_times").is_some() { object.size("backward_times")? } else { 1 };
    Ok(Case {
        id: object.text("id")?,
        op: object.text("op")?,
        group: object.text("group")?,
        out: mode("out")?,
        grad: mode("grad")?,
        second_mode: mode("second")?,
        inputs,
        steps,
        outputs,
        grad_outputs,
        grads,
        second,
        base_after,
        backward_times,
        error,
    })
}

/// Reads the second-order values of a case.
fn second(value: &Value, store: &Store) -> Result<Second, String> {
    let object = Object::new(value)?;
    let tensors = |name: &str| object.list(name, |value| tensor_key(value, store));
    let expected = match object.get("error") {
        Some(error) => Err(expected(error)?),
        None => {
            Ok(SecondValues { grad_inputs: tensors("grad_inputs")?, grad_grad_outputs: tensors("grad_grad_outputs")? })
        }
    };
    Ok(Second { v: tensors("v")?, expected })
}

fn shape_case(value: &Value) -> Result<ShapeCase, String> {
    let object = Object::new(value)?;
    let expected = match (object.get("ok"), object.get("error")) {
        (Some(ok), None) => Ok(ok.clone()),
        (None, Some(error)) => Err(expected(error)?),
        _ => return Err("expected either 'ok' or 'error'".into()),
    };
    Ok(ShapeCase { id: object.text("id")?, function: object.text("fn")?, fields: value.clone(), expected })
}

fn mode(name: &str, object: Object) -> Result<Mode, String> {
    match name {
        "bits" => Ok(Mode::Bits),
        "value" => Ok(Mode::Value),
        "close" => Ok(Mode::Close { rtol: object.number("rtol")?, atol: object.number("atol")? }),
        other => Err(format!("'{other}' is no way to compare")),
    }
}

fn input(value: &Value, store: &Store) -> Result<Input, String> {
    let object = Object::new(value)?;
    Ok(Input { name: object.text("name")?, window: window(object, store)?, grad: object.flag("grad")? })
}

fn window(object: Object, store: &Store) -> Result<Window, String> {
    let window = Window {
        dtype: dtype(object.field("dtype")?)?,
        shape: object.sizes("shape")?,
        base: object.text("base")?,
        strides: object.strides("strides")?,
        offset: object.size("offset")?,
    };
    store.check(&window)?;
    Ok(window)
}

fn output(value: &Value, store: &Store) -> Result<Output, String> {
    let object = Object::new(value)?;
    let tensor = object.text("t")?;
    store.check_key(&tensor)?;
    let view = match object.get("strides") {
        None => None,
        Some(_) => Some((object.strides("strides")?, object.size("offset")?)),
    };
    Ok(Output {
        name: object.text("name")?,
        dtype: dtype(object.field("dtype")?)?,
        tensor,
        requires_grad: object.flag("requires_grad")?,
        view,
    })
}

fn tensor_key(value: &Value, store: &Store) -> Result<Option<String>, String> {
    match value {
        Value::Null => Ok(None),
        Value::String(key) => {
            store.check_key(key)?;
            Ok(Some(key.clone()))
        }
        other => Err(format!("expected a tensor's name, found {}", brief(other))),
    }
}

fn step(value: &Value) -> Result<Step, String> {
    let object = Object::new(value)?;
    let kwargs = Object::new(object.field("kwargs")?)?;
    Ok(Step {
        op: object.text("op")?,
        args: object.list("args", literal)?,
        kwargs: kwargs
            .entries()
            .map(|(name, value)| Ok((name.clone(), literal(value)?)))
            .collect::<Result<_, String>>()?,
        out: object.list("out", |value| value.as_str().map(str::to_owned).ok_or("a name is a text".to_owned()))?,
    })
}

/// Checks that every step reads only names that were bound before.
fn check_names(inputs: &[Input], steps: &[Step]) -> Result<(), String> {
    let mut bound: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    for step in steps {
        let arguments = step.args.iter().chain(step.kwargs.iter().map(|(_, value)| value));
        for name in arguments.flat_map(Literal::names) {
            if !bound.contains(&name) {
                return Err(format!("{} reads '{name}', which nothing defines", step.op));
            }
        }
        bound.extend(step.out.iter().map(String::as_str));
    }
    Ok(())
}

impl Literal {
    /// Returns the names of inputs and earlier results in the argument, also inside of lists.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Literal::Name(name) => vec![name],
            Literal::List(items) => items.iter().flat_map(Literal::names).collect(),
            _ => Vec::new(),
        }
    }
}

/// Reads an argument of a step or of a shape case.
pub fn literal(value: &Value) -> Result<Literal, String> {
    let unknown = || format!("an argument cannot be {}", brief(value));
    match value {
        Value::Null => Ok(Literal::None),
        Value::Bool(flag) => Ok(Literal::Flag(*flag)),
        Value::Number(number) => number.as_i64().map(Literal::Integer).ok_or_else(unknown),
        Value::String(text) => Ok(Literal::Text(text.clone())),
        Value::Array(items) => items.iter().map(literal).collect::<Result<_, _>>().map(Literal::List),
        Value::Object(_) => match Object::new(value)?.only() {
            Some(("f64", Value::String(text))) => text.parse().map(Literal::Number).map_err(|_| unknown()),
            Some(("t", Value::String(name))) => Ok(Literal::Name(name.clone())),
            Some(("dtype", name)) => dtype(name).map(Literal::DType),
            Some(("slice", Value::Array(parts))) if parts.len() == 3 => {
                let mut bounds = [None; 3];
                for (bound, part) in bounds.iter_mut().zip(parts) {
                    *bound = match part {
                        Value::Null => None,
                        part => Some(part.as_i64().ok_or_else(unknown)?),
                    };
                }
                Ok(Literal::Slice(bounds))
            }
            _ => Err(unknown()),
        },
    }
}

fn expected(value: &Value) -> Result<Expected, String> {
    let object = Object::new(value)?;
    let phase = match object.get("phase") {
        // Shape cases have no phases.
        None => Phase::Forward,
        Some(_) => match object.text("phase")?.as_str() {
            "forward" => Phase::Forward,
            "backward" => Phase::Backward,
            "double_backward" => Phase::DoubleBackward,
            other => return Err(format!("'{other}' is no phase")),
        },
    };
    let step = if object.get("step").is_some() { Some(object.size("step")?) } else { None };
    Ok(Expected { phase, step, category: object.text("category")?, message: object.text("message")? })
}

/// Returns an element type by its name.
pub fn dtype(value: &Value) -> Result<DType, String> {
    match value.as_str() {
        Some("f64") => Ok(DType::F64),
        Some("f32") => Ok(DType::F32),
        Some("i64") => Ok(DType::I64),
        Some("bool") => Ok(DType::Bool),
        _ => Err(format!("{} is no dtype", brief(value))),
    }
}
