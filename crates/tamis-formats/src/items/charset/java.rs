//! Lists the characters that Java encodes to other bytes than the WHATWG standard and `encoding_rs`. A row contains a
//! character, and Java's bytes as a big-endian number. The number 0x3f is `?`: Java's table does not contain the
//! character.
//!
//! The tables come from a comparison of all characters in OpenJDK 17.0.15 and encoding_rs 0.8.44.

/// GBK.
#[rustfmt::skip]
pub(super) const GBK: &[(char, u32)] = &[
    ('\u{1f9}', 0x3f), ('\u{1e3f}', 0x3f), ('\u{20ac}', 0xa2e3), ('\u{2295}', 0x3f), ('\u{2641}', 0xa892),
    ('\u{2e81}', 0x3f), ('\u{2e84}', 0x3f), ('\u{2e88}', 0x3f), ('\u{2e8b}', 0x3f), ('\u{2e8c}', 0x3f),
    ('\u{2e97}', 0x3f), ('\u{2ea7}', 0x3f), ('\u{2eaa}', 0x3f), ('\u{2eae}', 0x3f), ('\u{2eb3}', 0x3f),
    ('\u{2eb6}', 0x3f), ('\u{2eb7}', 0x3f), ('\u{2ebb}', 0x3f), ('\u{2eca}', 0x3f), ('\u{2ff0}', 0x3f),
    ('\u{2ff1}', 0x3f), ('\u{2ff2}', 0x3f), ('\u{2ff3}', 0x3f), ('\u{2ff4}', 0x3f), ('\u{2ff5}', 0x3f),
    ('\u{2ff6}', 0x3f), ('\u{2ff7}', 0x3f), ('\u{2ff8}', 0x3f), ('\u{2ff9}', 0x3f), ('\u{2ffa}', 0x3f),
    ('\u{2ffb}', 0x3f), ('\u{303e}', 0x3f), ('\u{3447}', 0x3f), ('\u{3473}', 0x3f), ('\u{359e}', 0x3f),
    ('\u{360e}', 0x3f), ('\u{361a}', 0x3f), ('\u{3918}', 0x3f), ('\u{396e}', 0x3f), ('\u{39cf}', 0x3f),
    ('\u{39d0}', 0x3f), ('\u{39df}', 0x3f), ('\u{3a73}', 0x3f), ('\u{3b4e}', 0x3f), ('\u{3c6e}', 0x3f),
    ('\u{3ce0}', 0x3f), ('\u{4056}', 0x3f), ('\u{415f}', 0x3f), ('\u{4337}', 0x3f), ('\u{43ac}', 0x3f),
    ('\u{43b1}', 0x3f), ('\u{43dd}', 0x3f), ('\u{44d6}', 0x3f), ('\u{464c}', 0x3f), ('\u{4661}', 0x3f),
    ('\u{4723}', 0x3f), ('\u{4729}', 0x3f), ('\u{477c}', 0x3f), ('\u{478d}', 0x3f), ('\u{4947}', 0x3f),
    ('\u{497a}', 0x3f), ('\u{497d}', 0x3f), ('\u{4982}', 0x3f), ('\u{4983}', 0x3f), ('\u{4985}', 0x3f),
    ('\u{4986}', 0x3f), ('\u{499b}', 0x3f), ('\u{499f}', 0x3f), ('\u{49b6}', 0x3f), ('\u{49b7}', 0x3f),
    ('\u{4c77}', 0x3f), ('\u{4c9f}', 0x3f), ('\u{4ca0}', 0x3f), ('\u{4ca1}', 0x3f), ('\u{4ca2}', 0x3f),
    ('\u{4ca3}', 0x3f), ('\u{4d13}', 0x3f), ('\u{4d14}', 0x3f), ('\u{4d15}', 0x3f), ('\u{4d16}', 0x3f),
    ('\u{4d17}', 0x3f), ('\u{4d18}', 0x3f), ('\u{4d19}', 0x3f), ('\u{4dae}', 0x3f), ('\u{9fb4}', 0x3f),
    ('\u{9fb5}', 0x3f), ('\u{9fb6}', 0x3f), ('\u{9fb7}', 0x3f), ('\u{9fb8}', 0x3f), ('\u{9fb9}', 0x3f),
    ('\u{9fba}', 0x3f), ('\u{9fbb}', 0x3f), ('\u{e5e5}', 0xa3a0), ('\u{e7c7}', 0xa8bc), ('\u{e7c8}', 0xa8bf),
    ('\u{e7e7}', 0xa989), ('\u{e7e8}', 0xa98a), ('\u{e7e9}', 0xa98b), ('\u{e7ea}', 0xa98c), ('\u{e7eb}', 0xa98d),
    ('\u{e7ec}', 0xa98e), ('\u{e7ed}', 0xa98f), ('\u{e7ee}', 0xa990), ('\u{e7ef}', 0xa991), ('\u{e7f0}', 0xa992),
    ('\u{e7f1}', 0xa993), ('\u{e7f2}', 0xa994), ('\u{e7f3}', 0xa995), ('\u{e815}', 0xfe50), ('\u{e819}', 0xfe54),
    ('\u{e81a}', 0xfe55), ('\u{e81b}', 0xfe56), ('\u{e81c}', 0xfe57), ('\u{e81d}', 0xfe58), ('\u{e81f}', 0xfe5a),
    ('\u{e820}', 0xfe5b), ('\u{e821}', 0xfe5c), ('\u{e822}', 0xfe5d), ('\u{e823}', 0xfe5e), ('\u{e824}', 0xfe5f),
    ('\u{e825}', 0xfe60), ('\u{e827}', 0xfe62), ('\u{e828}', 0xfe63), ('\u{e829}', 0xfe64), ('\u{e82a}', 0xfe65),
    ('\u{e82d}', 0xfe68), ('\u{e82e}', 0xfe69), ('\u{e82f}', 0xfe6a), ('\u{e830}', 0xfe6b), ('\u{e833}', 0xfe6e),
    ('\u{e834}', 0xfe6f), ('\u{e835}', 0xfe70), ('\u{e836}', 0xfe71), ('\u{e837}', 0xfe72), ('\u{e838}', 0xfe73),
    ('\u{e839}', 0xfe74), ('\u{e83a}', 0xfe75), ('\u{e83c}', 0xfe77), ('\u{e83d}', 0xfe78), ('\u{e83e}', 0xfe79),
    ('\u{e83f}', 0xfe7a), ('\u{e840}', 0xfe7b), ('\u{e841}', 0xfe7c), ('\u{e842}', 0xfe7d), ('\u{e844}', 0xfe80),
    ('\u{e845}', 0xfe81), ('\u{e846}', 0xfe82), ('\u{e847}', 0xfe83), ('\u{e848}', 0xfe84), ('\u{e849}', 0xfe85),
    ('\u{e84a}', 0xfe86), ('\u{e84b}', 0xfe87), ('\u{e84c}', 0xfe88), ('\u{e84d}', 0xfe89), ('\u{e84e}', 0xfe8a),
    ('\u{e84f}', 0xfe8b), ('\u{e850}', 0xfe8c), ('\u{e851}', 0xfe8d), ('\u{e852}', 0xfe8e), ('\u{e853}', 0xfe8f),
    ('\u{e856}', 0xfe92), ('\u{e857}', 0xfe93), ('\u{e858}', 0xfe94), ('\u{e859}', 0xfe95), ('\u{e85a}', 0xfe96),
    ('\u{e85b}', 0xfe97), ('\u{e85c}', 0xfe98), ('\u{e85d}', 0xfe99), ('\u{e85e}', 0xfe9a), ('\u{e85f}', 0xfe9b),
    ('\u{e860}', 0xfe9c), ('\u{e861}', 0xfe9d), ('\u{e862}', 0xfe9e), ('\u{e863}', 0xfe9f), ('\u{fe10}', 0x3f),
    ('\u{fe11}', 0x3f), ('\u{fe12}', 0x3f), ('\u{fe13}', 0x3f), ('\u{fe14}', 0x3f), ('\u{fe15}', 0x3f),
    ('\u{fe16}', 0x3f), ('\u{fe17}', 0x3f), ('\u{fe18}', 0x3f), ('\u{fe19}', 0x3f),
];

/// GB 18030 of 2022.
#[rustfmt::skip]
pub(super) const GB18030: &[(char, u32)] = &[
    ('\u{e5e5}', 0xa3a0), ('\u{e78d}', 0x84318236), ('\u{e78e}', 0x84318238), ('\u{e78f}', 0x84318237),
    ('\u{e790}', 0x84318239), ('\u{e791}', 0x84318330), ('\u{e792}', 0x84318331), ('\u{e793}', 0x84318332),
    ('\u{e794}', 0x84318333), ('\u{e795}', 0x84318334), ('\u{e796}', 0x84318335), ('\u{e81e}', 0x82359037),
    ('\u{e826}', 0x82359038), ('\u{e82b}', 0x82359039), ('\u{e82c}', 0x82359130), ('\u{e832}', 0x82359131),
    ('\u{e843}', 0x82359132), ('\u{e854}', 0x82359133), ('\u{e864}', 0x82359134),
];
