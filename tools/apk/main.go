// Command apk makes the index of a repository of Alpine packages, and installs packages from it into a folder, by the library
// of apko. It runs no scripts of packages, and does not replace a package that is installed.
//
//	apk index FOLDER         writes FOLDER/APKINDEX.tar.gz for all packages in the folder of an architecture
//	apk add ROOT REPOSITORY ARCHITECTURE PACKAGE
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/chainguard-dev/go-apk/pkg/apk"
	apkfs "github.com/chainguard-dev/go-apk/pkg/fs"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == "index":
		return index(ctx, args[1])
	case len(args) == 5 && args[0] == "add":
		return add(ctx, args[1], args[2], args[3], args[4])
	}
	return fmt.Errorf("usage: apk index FOLDER | apk add ROOT REPOSITORY ARCHITECTURE PACKAGE")
}

func index(ctx context.Context, folder string) error {
	paths, err := filepath.Glob(filepath.Join(folder, "*.apk"))
	if err != nil {
		return err
	}
	found := &apk.APKIndex{Description: "test"}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		parsed, err := apk.ParsePackage(ctx, file)
		file.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		found.Packages = append(found.Packages, parsed)
	}
	archive, err := apk.ArchiveFromIndex(found)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(folder, "APKINDEX.tar.gz"))
	if err != nil {
		return err
	}
	defer out.Close()
	_, err = io.Copy(out, archive)
	return err
}

func add(ctx context.Context, root, repository, architecture, name string) error {
	database, err := apk.New(
		apk.WithFS(apkfs.DirFS(root)),
		apk.WithArch(architecture),
		apk.WithIgnoreMknodErrors(true),
		apk.WithNoSignatureIndexes(repository),
	)
	if err != nil {
		return err
	}
	if err := database.InitDB(ctx); err != nil {
		return err
	}
	if err := database.SetRepositories(ctx, []string{repository}); err != nil {
		return err
	}
	if err := database.SetWorld(ctx, []string{name}); err != nil {
		return err
	}
	if err := database.FixateWorld(ctx, nil); err != nil {
		return err
	}
	installed, err := database.GetInstalled()
	if err != nil {
		return err
	}
	for _, each := range installed {
		fmt.Println(each.Name, each.Version)
	}
	return nil
}
