//! The program as a file.

use crate::Run;
use crate::table::Goal;
use crate::world::PROGRAM;

/// Its size; and that it carries no symbols.
pub fn binary(run: &mut Run) {
    let bytes = std::fs::read(PROGRAM).unwrap();
    assert!(cfg!(debug_assertions) || !has_symbols(&bytes), "the program is not stripped");
    let mib = bytes.len() as f64 / 1024.0 / 1024.0;
    run.table.row("the program, stripped", mib, None, "MiB", Goal::AtMost(8.0));
}

/// Whether an ELF file of 64 bits has a section of type SHT_SYMTAB.
fn has_symbols(elf: &[u8]) -> bool {
    const SHT_SYMTAB: u64 = 2;
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        eprintln!("  whether it is stripped cannot be told here");
        return false;
    }
    let number = |at: usize, len: usize| elf[at..at + len].iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let place = |n: u64| usize::try_from(n).unwrap();
    let (sections, size, count) = (place(number(0x28, 8)), place(number(0x3a, 2)), place(number(0x3c, 2)));
    (0..count).any(|n| number(sections + n * size + 4, 4) == SHT_SYMTAB)
}
