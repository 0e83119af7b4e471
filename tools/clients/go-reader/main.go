// Holds a file open. For each line of input, prints its content by read, pread and mmap, and that of the path, as JSON.
package main

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"syscall"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func mapped(file *os.File, flags int) []byte {
	size := int(must(file.Stat()).Size())
	return must(syscall.Mmap(int(file.Fd()), 0, size, syscall.PROT_READ, flags))
}

func main() {
	path := os.Args[1]
	file := must(os.Open(path))
	shared := mapped(file, syscall.MAP_SHARED)
	private := mapped(file, syscall.MAP_PRIVATE)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		must(file.Seek(0, io.SeekStart))
		read := must(io.ReadAll(file))
		pread := make([]byte, len(read))
		must(file.ReadAt(pread, 0))
		again := must(os.Open(path))
		now := []string{string(must(os.ReadFile(path))), string(mapped(again, syscall.MAP_SHARED))}
		again.Close()
		held := []string{string(read), string(pread), string(shared), string(private)}
		os.Stdout.Write(append(must(json.Marshal(map[string][]string{"held": held, "now": now})), '\n'))
	}
}
