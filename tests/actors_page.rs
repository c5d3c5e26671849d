//! The failure matrix of `actors.md` names tests: each of them has to be there.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_page_names_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("actors.md")).unwrap();
    let matrix = page.split("| what fails |").nth(1).and_then(|rest| rest.split("\n\n").next()).unwrap();
    let mut named = 0;
    for row in matrix.lines().skip(2) {
        let shown_by = row.trim_end_matches('|').rsplit('|').next().unwrap();
        assert!(
            shown_by.contains('`') || shown_by.contains('–') || shown_by.contains("the same"),
            "no test is named: {row}"
        );
        let mut file = String::new();
        for name in shown_by.split('`').skip(1).step_by(2) {
            // `suite::theme::test`, or `room::tests::test`; further tests of the same theme go without.
            if let Some((path, _)) = name.rsplit_once("::") {
                file = match path.strip_suffix("::tests") {
                    Some(room) => format!("src/{}.rs", room.replace("::", "/")),
                    None => format!("tests/{}.rs", path.replace("::", "/")),
                };
            }
            let test = name.rsplit("::").next().unwrap();
            let text = fs::read_to_string(root.join(&file)).unwrap_or_else(|_| panic!("{name}: there is no {file}"));
            assert!(
                text.contains(&format!("fn {test}(")) || text.contains(&format!("{test}!")),
                "{file} has no {test}"
            );
            named += 1;
        }
    }
    assert!(named > 20, "only {named} were found");
}
