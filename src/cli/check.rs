//! `anna-relay check`: the configuration as it holds.

use serde_json::{Map, Value, json};

use super::out;
use crate::config::Config;
use crate::config::keys::{KEYS, SECTIONS};
use crate::error::Result;
use crate::text;

/// Prints the configuration with the defaults filled in. That it could be loaded is the check.
///
/// # Errors
/// Where it cannot be printed.
pub fn run(config: &Config, json: bool) -> Result<()> {
    if json { out::print_json(&document(config)) } else { out::print(&toml(config)) }
}

/// The configuration as TOML.
fn toml(config: &Config) -> String {
    let file = config.file.display().to_string();
    let mut out = match config.found {
        true => format!("# {} is good; with the defaults filled in:\n", text::on_one_line(&file)),
        false => format!("# there is no {}; these are the defaults:\n", text::on_one_line(&file)),
    };
    for what in &config.passed_over {
        out += &format!("# but {}\n", text::on_one_line(what));
    }
    for section in SECTIONS {
        out += &format!("\n[{section}]\n");
        for key in KEYS.iter().filter(|key| key.section == section) {
            out += &format!("{} = {}\n", key.name, literal(&config.value(key)));
        }
    }
    out
}

/// A value as TOML: JSON's words for what the keys hold, and lists as people write them.
fn literal(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(literal).collect::<Vec<_>>().join(", ")),
        value => value.to_string(),
    }
}

/// The configuration as JSON.
fn document(config: &Config) -> Value {
    let mut document = Map::new();
    document.insert("file".to_owned(), json!(config.file.to_string_lossy()));
    document.insert("found".to_owned(), json!(config.found));
    document.insert("passed_over".to_owned(), json!(config.passed_over));
    for section in SECTIONS {
        let keys = KEYS.iter().filter(|key| key.section == section);
        let values: Map<String, Value> = keys.map(|key| (key.name.to_owned(), config.value(key))).collect();
        document.insert(section.to_owned(), Value::Object(values));
    }
    Value::Object(document)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Env;

    const TEXT: &str = "[paths]\nstate = '/a \"b\" \\ c'\n[relay]\nsettle_s = 0.25\nalarm_min = 0.1\nholder = 'any'\n";

    fn parse(text: &str) -> Config {
        Config::parse(text, Path::new("/x/anna.toml"), &Env { home: Some("/home/anna".into()), ..Env::default() })
            .unwrap()
    }

    #[test]
    fn what_it_prints_is_the_same_configuration() {
        let config = parse(TEXT);
        let printed = toml(&config);
        assert!(printed.starts_with(
            "# /x/anna.toml is good; with the defaults filled in:\n\n[paths]\nstate = \"/a \\\"b\\\" \\\\ c\"\n"
        ));
        assert!(
            printed.contains(
                "\nsettle_s = 0.25\nalarm_min = 0.1\nbreaker_count = 5\nbreaker_window_s = 120\nholder = \"any\"\n"
            ),
            "{printed}"
        );
        assert_eq!(parse(&printed), config);
        for key in KEYS.iter().filter(|key| key.section == "relay") {
            assert_eq!(literal(&parse("").value(key)), key.default, "{key}");
        }
        let odd = toml(&parse("enabled = true\n[paths]\n[relays]\n[day]\nenabled = true\n[Relay]"));
        let (first, rest) = odd.split_once('\n').unwrap();
        assert!(first.ends_with("is good; with the defaults filled in:"));
        let but = [
            "# but line 1: enabled stands in no section and is not read: put it under [relay]",
            "# but line 3: [relays] is not read: did you mean [relay]?",
            "# but line 6: [Relay] is not read: did you mean [relay]?",
        ];
        assert_eq!(rest.lines().take_while(|line| !line.is_empty()).collect::<Vec<_>>(), but);
        let none = Config { found: false, ..parse("") };
        assert!(toml(&none).starts_with("# there is no /x/anna.toml; these are the defaults:\n"));
    }

    #[test]
    fn the_document_has_every_key() {
        let document = document(&parse(TEXT));
        assert_eq!(document["file"], "/x/anna.toml");
        assert_eq!(document["found"], true);
        assert_eq!(document["relay"]["alarm_min"], 0.1);
        assert_eq!(document["relay"]["brain_port"], 8788);
        assert_eq!(document["paths"]["stream"], "/a \"b\" \\ c/stream.log");
    }
}
