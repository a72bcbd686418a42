//! Reads JSON objects field by field. The error of a missing or wrong field names it.

use serde_json::{Map, Value};

/// A JSON object of the set's index, the file `cases.json`.
#[derive(Clone, Copy)]
pub struct Object<'j>(&'j Map<String, Value>);

impl<'j> Object<'j> {
    /// Returns `value` as an object.
    pub fn new(value: &'j Value) -> Result<Self, String> {
        value.as_object().map(Object).ok_or_else(|| format!("expected an object, found {}", brief(value)))
    }

    /// Returns the field `name`, or `None` if it is missing.
    pub fn get(self, name: &str) -> Option<&'j Value> {
        self.0.get(name)
    }

    /// Returns the field `name`, or an error if it is missing.
    pub fn field(self, name: &str) -> Result<&'j Value, String> {
        self.get(name).ok_or_else(|| format!("field '{name}' is missing"))
    }

    /// Returns the field `name` as a text, or an error.
    pub fn text(self, name: &str) -> Result<String, String> {
        let value = self.field(name)?;
        value.as_str().map(str::to_owned).ok_or_else(|| wrong(name, "a text", value))
    }

    /// Returns the field `name` as an integer, or an error.
    pub fn integer(self, name: &str) -> Result<i64, String> {
        let value = self.field(name)?;
        value.as_i64().ok_or_else(|| wrong(name, "an integer", value))
    }

    /// Returns the field `name` as a size or a count, or an error.
    pub fn size(self, name: &str) -> Result<usize, String> {
        let value = self.field(name)?;
        value.as_u64().and_then(|size| usize::try_from(size).ok()).ok_or_else(|| wrong(name, "a size", value))
    }

    /// Returns the field `name` as a floating-point number, or an error. Integers are numbers too.
    pub fn number(self, name: &str) -> Result<f64, String> {
        let value = self.field(name)?;
        value.as_f64().ok_or_else(|| wrong(name, "a number", value))
    }

    /// Returns the field `name` as a boolean, or an error.
    pub fn flag(self, name: &str) -> Result<bool, String> {
        let value = self.field(name)?;
        value.as_bool().ok_or_else(|| wrong(name, "true or false", value))
    }

    /// Returns the field `name` as a list whose elements `read` reads, or an error.
    pub fn list<T>(self, name: &str, read: impl Fn(&'j Value) -> Result<T, String>) -> Result<Vec<T>, String> {
        let value = self.field(name)?;
        let items = value.as_array().ok_or_else(|| wrong(name, "a list", value))?;
        items.iter().map(|item| read(item).map_err(|error| format!("in '{name}': {error}"))).collect()
    }

    /// Returns the field `name` as a list of sizes, or an error.
    pub fn sizes(self, name: &str) -> Result<Vec<usize>, String> {
        self.list(name, |value| {
            value.as_u64().and_then(|size| usize::try_from(size).ok()).ok_or_else(|| wrong(name, "sizes", value))
        })
    }

    /// Returns the field `name` as a list of strides, or an error.
    pub fn strides(self, name: &str) -> Result<Vec<isize>, String> {
        self.list(name, |value| {
            value.as_i64().and_then(|stride| isize::try_from(stride).ok()).ok_or_else(|| wrong(name, "strides", value))
        })
    }

    /// Returns the fields with their names, in the order of the map.
    pub fn entries(self) -> impl Iterator<Item = (&'j String, &'j Value)> {
        self.0.iter()
    }

    /// Returns the only field of the object, or `None` if the object has no field or several fields.
    pub fn only(self) -> Option<(&'j str, &'j Value)> {
        let mut entries = self.0.iter();
        match (entries.next(), entries.next()) {
            (Some((name, value)), None) => Some((name, value)),
            _ => None,
        }
    }
}

fn wrong(name: &str, expected: &str, found: &Value) -> String {
    format!("field '{name}' is not {expected}: {}", brief(found))
}

/// Returns the beginning of a value, for error messages.
pub fn brief(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
