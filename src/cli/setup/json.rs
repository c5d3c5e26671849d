//! JSON edited in place: what is not touched keeps its bytes, its order, its indentation and its line endings.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::Value;

/// The mark at the start of a file that some editors write.
const BOM: char = '\u{feff}';
/// What an empty file is taken for.
const EMPTY: &str = "{}\n";

/// Why a text cannot be edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where: line and column, from 1.
    pub at: Option<(usize, usize)>,
    /// What is wrong there.
    pub why: String,
}

impl Refusal {
    fn of(why: impl Into<String>) -> Refusal {
        Refusal { at: None, why: why.into() }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.at {
            Some((line, column)) => write!(f, "line {line}, column {column}: {}", self.why),
            None => f.write_str(&self.why),
        }
    }
}

/// The value of a JSON text, a mark at its start aside; an empty text is an empty object.
///
/// # Errors
/// It is not JSON (comments are not).
pub fn parse(text: &str) -> Result<Value, Refusal> {
    let body = text.strip_prefix(BOM).unwrap_or(text);
    if body.trim().is_empty() {
        return Ok(Value::Object(serde_json::Map::new()));
    }
    serde_json::from_str(body).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let said = error.to_string();
        let mut why = said.split(" at line ").next().unwrap_or(&said).to_owned();
        let there = body.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
        let byte = there.as_bytes().get(column.saturating_sub(1)).copied();
        if matches!(byte, Some(b'/' | b'#')) {
            "it has a comment, which JSON does not allow".clone_into(&mut why);
        }
        Refusal { at: Some((line, column)), why }
    })
}

/// A JSON text that is being edited.
#[derive(Debug)]
pub struct Document {
    bom: bool,
    root: CstRootNode,
}

impl Document {
    /// Takes up a text whose top is an object.
    ///
    /// # Errors
    /// It is not JSON, or its top is something else.
    pub fn open(text: &str) -> Result<Document, Refusal> {
        if !parse(text)?.is_object() {
            return Err(Refusal::of("its top is not an object"));
        }
        let (bom, body) = match text.strip_prefix(BOM) {
            Some(body) => (true, body),
            None => (false, text),
        };
        let body = if body.trim().is_empty() { EMPTY } else { body };
        let root = CstRootNode::parse(body, &strict()).map_err(|error| Refusal::of(error.to_string()))?;
        Ok(Document { bom, root })
    }

    /// The text as it is now.
    #[must_use]
    pub fn text(&self) -> String {
        let mark = if self.bom { BOM.to_string() } else { String::new() };
        format!("{mark}{}", self.root)
    }

    /// The value at a path.
    #[must_use]
    pub fn get(&self, path: &[&str]) -> Option<Value> {
        self.node(path)?.to_serde_value()
    }

    /// Puts a value at a path, making the objects on the way; nothing is changed where it is there already.
    ///
    /// # Errors
    /// Something on the way is not an object.
    pub fn set(&self, path: &[&str], value: &Value) -> Result<(), Refusal> {
        let Some((name, parents)) = path.split_last() else { return Err(Refusal::of("the path is empty")) };
        let object = self.object(parents)?;
        match last(&object, name) {
            Some(prop) if prop.value().and_then(|now| now.to_serde_value()).as_ref() == Some(value) => {}
            Some(prop) => prop.set_value(input(value)),
            None => drop(object.append(name, input(value))),
        }
        Ok(())
    }

    /// Puts a value at the end of the list at a path, unless it is in it.
    ///
    /// # Errors
    /// What is there is not a list, or something on the way is not an object.
    pub fn include(&self, path: &[&str], value: &Value) -> Result<(), Refusal> {
        let list = self.list_or_new(path)?;
        if !list.elements().iter().any(|one| one.to_serde_value().as_ref() == Some(value)) {
            list.append(input(value));
        }
        Ok(())
    }

    /// Puts a value in the place of element `n` of the list at a path.
    ///
    /// # Errors
    /// There is no such element.
    pub fn replace(&self, path: &[&str], n: usize, value: &Value) -> Result<(), Refusal> {
        let list = self.list(path).ok_or_else(|| Refusal::of(format!("{} is not a list", path.join("."))))?;
        if list.elements().get(n).is_none() {
            return Err(Refusal::of(format!("{} has no element {n}", path.join("."))));
        }
        list.insert(n, input(value));
        if let Some(old) = list.elements().into_iter().nth(n + 1) {
            old.remove();
        }
        Ok(())
    }

    /// Takes a value out of the list at a path.
    pub fn exclude(&self, path: &[&str], value: &Value) {
        let Some(list) = self.list(path) else { return };
        for one in list.elements() {
            if one.to_serde_value().as_ref() == Some(value) {
                one.remove();
            }
        }
    }

    /// Removes what is at a path.
    pub fn remove(&self, path: &[&str]) {
        let Some((name, parents)) = path.split_last() else { return };
        let parent = if parents.is_empty() {
            self.root.object_value()
        } else {
            self.node(parents).and_then(|node| node.as_object())
        };
        if let Some(prop) = parent.and_then(|object| last(&object, name)) {
            prop.remove();
        }
    }

    fn node(&self, path: &[&str]) -> Option<CstNode> {
        let mut node = self.root.value()?;
        for name in path {
            node = last(&node.as_object()?, name)?.value()?;
        }
        Some(node)
    }

    fn list(&self, path: &[&str]) -> Option<CstArray> {
        self.node(path)?.as_array()
    }

    /// The object at a path, made where there is none.
    fn object(&self, path: &[&str]) -> Result<CstObject, Refusal> {
        let mut object = self.root.object_value().ok_or_else(|| Refusal::of("its top is not an object"))?;
        for (n, name) in path.iter().enumerate() {
            let prop = last(&object, name);
            let prop = prop.unwrap_or_else(|| object.append(name, CstInputValue::Object(Vec::new())));
            object =
                prop.object_value().ok_or_else(|| Refusal::of(format!("{} is not an object", path[..=n].join("."))))?;
        }
        Ok(object)
    }

    /// The list at a path, made where there is none.
    fn list_or_new(&self, path: &[&str]) -> Result<CstArray, Refusal> {
        let Some((name, parents)) = path.split_last() else { return Err(Refusal::of("the path is empty")) };
        let object = self.object(parents)?;
        let prop = last(&object, name).unwrap_or_else(|| object.append(name, CstInputValue::Array(Vec::new())));
        prop.array_value().ok_or_else(|| Refusal::of(format!("{} is not a list", path.join("."))))
    }
}

/// JSON and nothing that others also take for it.
fn strict() -> ParseOptions {
    ParseOptions {
        allow_comments: false,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

/// The property of that name; of several the last one, which is the one that counts for every reader of JSON.
fn last(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    object.properties().into_iter().rev().find(|prop| prop.decoded_name().as_deref() == Some(name))
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(list) => CstInputValue::Array(list.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests;
