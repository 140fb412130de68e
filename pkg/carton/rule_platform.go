package carton

import (
	"fmt"
	"strings"
)

// architectures are those that a target triple can begin with, as the
// target-lexicon crate, which the reference implementation parses triples with,
// knows them (https://docs.rs/target-lexicon).
var architectures = wordSet(`
	x86_64 x86_64h i386 i586 i686
	aarch64 aarch64_be arm64
	arm armeb armv4 armv4t armv5t armv5te armv5tej armv6 armv6j armv6k armv6kz
	armv6m armv6t2 armv6z armv7 armv7a armv7k armv7m armv7r armv7s armv7ve
	armv8 armv8a armv8.1a armv8.2a armv8.3a armv8.4a armv8.5a armv8m.base
	armv8m.main armv8r armebv7r thumbeb thumbv4t thumbv5te thumbv6m thumbv7a
	thumbv7em thumbv7m thumbv7neon thumbv8m.base thumbv8m.main
	riscv32 riscv32gc riscv32i riscv32im riscv32imac riscv32imafc riscv32imc
	riscv64 riscv64gc riscv64imac riscv64a23
	wasm32 wasm64 asmjs
	loongarch64 powerpc powerpc64 powerpc64le s390x sparc sparc64 sparcv9
	mips mipsel mipsisa32r6 mipsisa32r6el mips64 mips64el mipsisa64r6
	mipsisa64r6el
	amdgcn nvptx64 hexagon m68k msp430 avr bpfeb bpfel xtensa
	pulley32 pulley64 unknown`)

// checkPlatform wants a target triple: up to five words with "-" between them,
// of which the first is a known architecture.
func checkPlatform(triple string) error {
	words := strings.Split(triple, "-")
	if !architectures[words[0]] {
		return fmt.Errorf("%s begins with no known architecture", quoteShort(triple))
	}
	if len(words) > 5 {
		return fmt.Errorf("%s has %d parts, a target triple has at most 5", quoteShort(triple), len(words))
	}
	for _, w := range words {
		if w == "" || strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.") != "" {
			return fmt.Errorf("%s is not a target triple", quoteShort(triple))
		}
	}
	return nil
}

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}
