use serde_json::json;

use super::*;

fn edit(text: &str) -> String {
    let document = Document::open(text).unwrap();
    document.set(&["enabledPlugins", "x@y"], &json!(true)).unwrap();
    document.include(&["permissions", "allow"], &json!("Reply")).unwrap();
    let after = document.text();
    assert_eq!(parse(&after).unwrap()["enabledPlugins"]["x@y"], true, "{after}");
    let again = Document::open(&after).unwrap();
    again.set(&["enabledPlugins", "x@y"], &json!(true)).unwrap();
    again.include(&["permissions", "allow"], &json!("Reply")).unwrap();
    assert_eq!(again.text(), after, "the second time changes nothing");
    after
}

#[test]
fn an_empty_text_becomes_an_object() {
    let expected = "{\n  \"enabledPlugins\": {\n    \"x@y\": true\n  },\n  \"permissions\": {\n    \"allow\": [\"Reply\"]\n  }\n}\n";
    for text in ["", " \n", "{}", "{}\n", "{\n}\n"] {
        assert_eq!(edit(text).trim_end(), expected.trim_end(), "{text:?}");
    }
    assert_eq!(edit(""), expected);
}

#[test]
fn what_is_there_keeps_its_bytes() {
    for (text, kept) in [
        (
            "{\r\n    \"b\": [1,2 , 3],\r\n    \"a\": 1.0e2\r\n}\r\n",
            "{\r\n    \"b\": [1,2 , 3],\r\n    \"a\": 1.0e2,\r\n",
        ),
        ("{\n\t\"b\":\"\\u0041\"\n}", "{\n\t\"b\":\"\\u0041\",\n\t\"enabledPlugins\": {\n\t\t\"x@y\": true\n\t},\n"),
        ("\u{feff}{\n  \"z\": null\n}", "\u{feff}{\n  \"z\": null,\n"),
    ] {
        let after = edit(text);
        assert!(after.starts_with(kept), "{after:?}");
        assert_eq!(after.ends_with('\n'), text.ends_with('\n'), "{after:?}");
        assert_eq!(after.matches("\r\n").count(), if text.contains('\r') { after.matches('\n').count() } else { 0 });
    }
}

#[test]
fn lists_and_duplicates_and_depth() {
    let after = edit("{\"permissions\": {\"allow\": [\"A\"]},\n \"enabledPlugins\": {\"x@y\": false, \"p\": 1}}");
    assert!(after.contains("[\"A\", \"Reply\"]") && after.contains("{\"x@y\": true, \"p\": 1}"), "{after}");
    let twice = edit("{\"enabledPlugins\":{\"x@y\":true},\"enabledPlugins\":{\"x@y\":false}}");
    assert_eq!(parse(&twice).unwrap()["enabledPlugins"]["x@y"], true, "the last one counts");
    let deep = format!("{{\"deep\": {}1{}}}", "[".repeat(100), "]".repeat(100));
    assert!(edit(&deep).contains(&format!("{}1{}", "[".repeat(100), "]".repeat(100))));
    let too_deep = format!("{{\"deep\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Document::open(&too_deep).unwrap_err().why.contains("recursion"));
}

#[test]
fn what_is_not_json_is_refused_with_its_place() {
    for (text, at, why) in [
        ("{\n  // a comment\n  \"a\": 1\n}", (2, 3), "comment"),
        ("{\n  \"a\": 1, /* here */\n  \"b\": 1\n}", (2, 11), "comment"),
        ("{\"a\": 1,}", (1, 9), "trailing comma"),
        ("{\"a\": 1", (1, 7), "EOF"),
        ("{'a': 1}", (1, 2), "key must be a string"),
        ("{} {}", (1, 4), "trailing characters"),
    ] {
        let refusal = Document::open(text).unwrap_err();
        assert_eq!(refusal.at, Some(at), "{text}: {refusal}");
        assert!(refusal.why.contains(why), "{text}: {refusal}");
    }
    assert_eq!(Document::open("[1]").unwrap_err().to_string(), "its top is not an object");
    let document = Document::open("{\"permissions\": 5, \"list\": {}}").unwrap();
    assert_eq!(
        document.include(&["permissions", "allow"], &json!("x")).unwrap_err().why,
        "permissions is not an object"
    );
    assert_eq!(document.include(&["list"], &json!("x")).unwrap_err().why, "list is not a list");
}

#[test]
fn what_was_put_in_can_be_taken_out() {
    let text = "{\n  \"a\": [\n    1,\n    {\"b\": 2}\n  ]\n}\n";
    let document = Document::open(text).unwrap();
    document.include(&["a"], &json!({"c": 3})).unwrap();
    document.set(&["n", "m"], &json!("é\"\n")).unwrap();
    document.replace(&["a"], 1, &json!({"b": 4})).unwrap();
    assert_eq!(document.get(&["a"]), Some(json!([1, {"b": 4}, {"c": 3}])));
    assert_eq!(document.get(&["n", "m"]), Some(json!("é\"\n")));
    document.replace(&["a"], 1, &json!({"b": 2})).unwrap();
    document.exclude(&["a"], &json!({"c": 3}));
    document.remove(&["n"]);
    assert_eq!(parse(&document.text()).unwrap(), parse(text).unwrap());
    assert!(document.text().starts_with("{\n  \"a\": [\n    1,\n"), "{}", document.text());
}
