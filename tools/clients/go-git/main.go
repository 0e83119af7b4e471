// Command client is the go-git client of the interop tests: clone | shallow | fetch, then URL and FOLDER.
// It takes credentials from CLIENT_USER and CLIENT_PASSWORD.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
)

func main() {
	if len(os.Args) != 4 {
		fail(errors.New("usage: client clone|shallow|fetch URL FOLDER"))
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], account()); err != nil {
		fail(err)
	}
}

func run(verb, url, folder string, auth transport.AuthMethod) error {
	options := git.CloneOptions{URL: url, Auth: auth, NoCheckout: true, Tags: git.AllTags}
	switch verb {
	case "clone":
		_, err := git.PlainClone(folder, false, &options)
		return err
	case "shallow":
		options.Depth, options.SingleBranch, options.Tags = 1, true, git.NoTags
		options.ReferenceName = plumbing.NewBranchReferenceName("main")
		_, err := git.PlainClone(folder, false, &options)
		return err
	case "fetch":
		repository, err := git.PlainOpen(folder)
		if err != nil {
			return err
		}
		err = repository.Fetch(&git.FetchOptions{Auth: auth, Tags: git.AllTags, Force: true})
		if errors.Is(err, git.NoErrAlreadyUpToDate) {
			return nil
		}
		return err
	}
	return fmt.Errorf("unknown verb %q", verb)
}

func account() transport.AuthMethod {
	user, given := os.LookupEnv("CLIENT_USER")
	if !given {
		return nil
	}
	return &http.BasicAuth{Username: user, Password: os.Getenv("CLIENT_PASSWORD")}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
