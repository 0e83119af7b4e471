"""Reads documents with Python's readers: JSON cases on standard input, their values on standard output."""

import configparser
import io
import json
import netrc
import os
import sys
import tempfile
import tomllib

import javaproperties
import yaml
from dotenv import dotenv_values
from pip._internal.configuration import Configuration
from ruamel.yaml import YAML


def follow(document, path):
    for key in path:
        document = document[int(key) if isinstance(document, list) else key]
    return document


def ini(text, path, **options):
    parser = configparser.ConfigParser(**options)
    # As a file is read: only \n, \r and \r\n end a line there.
    parser.read_file(io.StringIO(text, newline=None))
    return parser.get(*path)


def read_netrc(text, path):
    with in_file(text) as name:
        entry = netrc.netrc(name).hosts[path[0]]
    return entry[2]


def pip(text, path):
    with in_file(text) as name:
        os.environ["PIP_CONFIG_FILE"] = name
        configuration = Configuration(isolated=False, load_only=None)
        configuration.load()
        return configuration.get_value(".".join(path))


class in_file:
    def __init__(self, text):
        self.text = text

    def __enter__(self):
        handle, self.name = tempfile.mkstemp()
        with os.fdopen(handle, "wb") as file:
            file.write(self.text.encode())
        return self.name

    def __exit__(self, *_):
        os.unlink(self.name)


def dotenv(text, path):
    with in_file(text) as name:
        return dotenv_values(name)[path[0]]


READERS = {
    "PyYAML": lambda text, path: follow(yaml.safe_load(text), path),
    "ruamel.yaml": lambda text, path: follow(YAML(typ="safe", pure=True).load(text), path),
    "json": lambda text, path: follow(json.loads(text), path),
    "tomllib": lambda text, path: follow(tomllib.loads(text), path),
    "configparser": ini,
    "configparser (raw)": lambda text, path: ini(text, path, interpolation=None),
    "pip": pip,
    "netrc": read_netrc,
    "python-dotenv": dotenv,
    "javaproperties": lambda text, path: javaproperties.loads(text)[path[0]],
}


def answer(case):
    try:
        value = READERS[case["reader"]](case["text"], case["path"])
    except Exception as error:  # A reader that refuses the document has not read the value.
        return {"error": f"{type(error).__name__}: {error}"}
    return {"value": ("true" if value else "false") if isinstance(value, bool) else str(value)}


json.dump([answer(case) for case in json.load(sys.stdin)], sys.stdout)
