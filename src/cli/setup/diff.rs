//! The difference of two texts, in the form of `diff -u`.

/// Lines around a change that are shown, as `diff -u` does.
const CONTEXT: usize = 3;
/// The most comparisons that a minimal difference may take; beyond that all is shown as changed.
const MAX_CELLS: usize = 4_000_000;

/// A line of the difference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// The difference from `old` to `new` under that name; empty where there is none.
#[must_use]
pub fn unified(name: &str, old: Option<&str>, new: Option<&str>) -> String {
    if old == new {
        return String::new();
    }
    let head = |text: Option<&str>| text.map_or("/dev/null", |_| name).to_owned();
    let mut out = format!("--- {}\n+++ {}\n", head(old), head(new));
    let lines = compare(&split(old), &split(new));
    let changed: Vec<usize> = (0..lines.len()).filter(|n| !matches!(lines[*n], Line::Same(_))).collect();
    let mut next = 0;
    while let Some(first) = changed.get(next).copied() {
        let mut last = first;
        while let Some(at) = changed.get(next).copied().filter(|at| *at <= last + 2 * CONTEXT + 1) {
            last = at;
            next += 1;
        }
        let range = first.saturating_sub(CONTEXT)..(last + CONTEXT + 1).min(lines.len());
        hunk(&mut out, &lines, range);
    }
    out
}

fn hunk(out: &mut String, lines: &[Line], range: std::ops::Range<usize>) {
    let old = |lines: &[Line]| lines.iter().filter(|line| !matches!(line, Line::New(_))).count();
    let new = |lines: &[Line]| lines.iter().filter(|line| !matches!(line, Line::Old(_))).count();
    let (before, shown) = (&lines[..range.start], &lines[range]);
    let place = |before: usize, count: usize| format!("{},{count}", if count == 0 { before } else { before + 1 });
    *out += &format!("@@ -{} +{} @@\n", place(old(before), old(shown)), place(new(before), new(shown)));
    for line in shown {
        let (sign, text) = match line {
            Line::Same(text) => (' ', text),
            Line::Old(text) => ('-', text),
            Line::New(text) => ('+', text),
        };
        out.push(sign);
        *out += text;
        if !text.ends_with('\n') {
            *out += "\n\\ No newline at end of file\n";
        }
    }
}

fn split(text: Option<&str>) -> Vec<&str> {
    text.unwrap_or_default().split_inclusive('\n').collect()
}

/// The longest common subsequence, between what is the same at both ends.
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Vec<Line<'a>> {
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = old[start..].iter().rev().zip(new[start..].iter().rev());
    let end = rest.take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    let mut lines: Vec<Line> = old[..start].iter().map(|text| Line::Same(text)).collect();
    if a.len().saturating_mul(b.len()) > MAX_CELLS {
        lines.extend(a.iter().map(|text| Line::Old(text)).chain(b.iter().map(|text| Line::New(text))));
    } else {
        let mut common = vec![vec![0_u32; b.len() + 1]; a.len() + 1];
        for i in (0..a.len()).rev() {
            for j in (0..b.len()).rev() {
                common[i][j] =
                    if a[i] == b[j] { common[i + 1][j + 1] + 1 } else { common[i + 1][j].max(common[i][j + 1]) };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < a.len() || j < b.len() {
            if i < a.len() && j < b.len() && a[i] == b[j] {
                lines.push(Line::Same(a[i]));
                (i, j) = (i + 1, j + 1);
            } else if j == b.len() || (i < a.len() && common[i + 1][j] >= common[i][j + 1]) {
                lines.push(Line::Old(a[i]));
                i += 1;
            } else {
                lines.push(Line::New(b[j]));
                j += 1;
            }
        }
    }
    lines.extend(old[old.len() - end..].iter().map(|text| Line::Same(text)));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_form_of_diff_u() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15";
        assert_eq!(
            unified("x", Some(old), Some(new)),
            "--- x\n+++ x\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
             @@ -12,3 +12,4 @@\n 12\n 13\n 14\n+15\n\\ No newline at end of file\n"
        );
        assert_eq!(unified("x", None, Some("{}\n")), "--- /dev/null\n+++ x\n@@ -0,0 +1,1 @@\n+{}\n");
        assert_eq!(unified("x", Some("a"), Some("a")), "");
    }
}
