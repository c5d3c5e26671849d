//! One value of `anna.toml`, held to the shape of its key.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeArray, DeValue};

use super::keys::{Key, Shape};

/// A value that passed its key's [`Shape`].
#[derive(Debug)]
pub(super) enum Value {
    Bool(bool),
    Whole(i64),
    Number(f64),
    Text(String),
    Texts(Vec<String>),
    Path(PathBuf),
}

/// Holds a value to its key's shape.
///
/// # Errors
/// What is wrong with it: the words that follow the key's name.
pub(super) fn check(key: &Key, value: &DeValue<'_>, home: Option<&Path>) -> Result<Value, String> {
    let wrong_type = || format!("must be {}, but is {}", key.shape, a_type(value));
    match (key.shape, value) {
        (Shape::Bool, DeValue::Boolean(truth)) => Ok(Value::Bool(*truth)),
        (Shape::Whole(min, max), DeValue::Integer(written)) => i64::from_str_radix(written.as_str(), written.radix())
            .ok()
            .filter(|number| (min..=max).contains(number))
            .map(Value::Whole)
            .ok_or_else(|| format!("must be {}, but is {written}", key.shape)),
        (Shape::FromZero(_) | Shape::AboveZero(_), DeValue::Integer(_) | DeValue::Float(_)) => {
            number(key, value).map(Value::Number)
        }
        (Shape::Word(words), DeValue::String(word)) if words.contains(&word.as_ref()) => {
            Ok(Value::Text(word.clone().into_owned()))
        }
        (Shape::Word(_), DeValue::String(word)) => Err(format!("must be {}, but is {word:?}", key.shape)),
        (Shape::Path, DeValue::String(path)) => expand(path, home).map(Value::Path),
        (Shape::Words, DeValue::Array(list)) => texts(list).map(Value::Texts),
        _ => Err(wrong_type()),
    }
}

/// The value as a number in its shape's range.
fn number(key: &Key, value: &DeValue<'_>) -> Result<f64, String> {
    let (written, number) = match value {
        DeValue::Integer(whole) => {
            let number = i64::from_str_radix(whole.as_str(), whole.radix()).map(|number| number as f64);
            (whole.to_string(), number.ok())
        }
        DeValue::Float(float) => (float.as_str().to_owned(), float.as_str().parse::<f64>().ok()),
        _ => (String::new(), None),
    };
    let fits = |number: &f64| match key.shape {
        Shape::FromZero(max) => (0.0..=max).contains(number),
        // What is less than a nanosecond would be rounded to nothing.
        Shape::AboveZero(max) => (1e-9..=max).contains(number),
        _ => false,
    };
    number.filter(fits).ok_or_else(|| format!("must be {}, but is {written}", key.shape))
}

/// The path with `~` expanded, if it can be used.
fn expand(path: &str, home: Option<&Path>) -> Result<PathBuf, String> {
    if path.is_empty() {
        return Err("is empty".to_owned());
    }
    if path.contains(char::is_control) {
        return Err(format!("has a control character in it: {path:?}"));
    }
    let rest = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        Some(_) => return Err(format!("names the home of another user, which is not supported: {path:?}")),
        None if path.starts_with('/') => return Ok(PathBuf::from(path)),
        None => return Err(format!("is the relative path {path:?}, which depends on where the relay is started")),
    };
    let home = home.ok_or("starts with ~, but there is no home folder: $HOME is not set")?;
    Ok(home.join(rest.trim_start_matches('/')))
}

/// The words of a list, if it is one.
fn texts(list: &DeArray<'_>) -> Result<Vec<String>, String> {
    if list.is_empty() {
        return Err("is an empty list".to_owned());
    }
    list.iter().map(Spanned::get_ref).map(text).collect()
}

fn text(value: &DeValue<'_>) -> Result<String, String> {
    let DeValue::String(word) = value else {
        return Err(format!("must hold texts only, but one is {}", a_type(value)));
    };
    if word.is_empty() {
        return Err("has an empty text in it".to_owned());
    }
    if word.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("has white space or a control character in {word:?}"));
    }
    Ok(word.clone().into_owned())
}

/// The type of a value, in words.
fn a_type(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "a truth value",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a section",
    }
}
